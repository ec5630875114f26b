import { untrack } from "svelte";

/** Keys of the page on screen. Pages add theirs while they are shown; `?` lists them all. */

export interface Key {
  /** One key ("j", "ArrowLeft", "Ctrl+Enter") or two in a row ("g r"). */
  keys: string;
  does: string;
  run: () => void;
  /** Also while a field has the focus. */
  inFields?: boolean;
}

interface Group {
  title: string;
  keys: Key[];
}

const SECOND_KEY_MS = 1200;

class Keyboard {
  groups = $state.raw<Group[]>([]);
  #first = "";
  #at = 0;

  add(group: Group): () => void {
    this.groups = [...untrack(() => this.groups), group];
    return () => {
      this.groups = this.groups.filter((other) => other !== group);
    };
  }

  press(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const field = isField(event.target);
    const name = keyName(event);
    const second = event.timeStamp - this.#at < SECOND_KEY_MS && this.#first ? `${this.#first} ${name}` : "";
    this.#first = "";
    const known = this.groups.flatMap((group) => group.keys).reverse();
    for (const wanted of second ? [second, name] : [name]) {
      const key = known.find((one) => one.keys === wanted && (one.inFields || !field));
      if (key && !(onControl(event.target) && (name === "Enter" || name === " "))) {
        event.preventDefault();
        key.run();
        return;
      }
    }
    if (!field && known.some((one) => one.keys.startsWith(`${name} `))) {
      this.#first = name;
      this.#at = event.timeStamp;
    }
  }
}

function keyName(event: KeyboardEvent): string {
  const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  return control + (event.altKey ? "Alt+" : "") + event.key;
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const written = target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type);
  return written || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

function onControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary") !== null;
}

export const keyboard = new Keyboard();

/** Keys that hold while the calling component is on screen. */
export function useKeys(title: string, keys: () => Key[]): void {
  $effect(() => keyboard.add({ title, keys: keys() }));
}
