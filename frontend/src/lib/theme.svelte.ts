/** Light or dark: as the system says, unless the reader chose. */

export type Theme = "system" | "light" | "dark";

const NAME = "deemster-theme";

class ThemeChoice {
  value = $state<Theme>("system");

  read(): void {
    const kept = keptTheme();
    this.set(kept === "light" || kept === "dark" ? kept : "system");
  }

  set(theme: Theme): void {
    this.value = theme;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(NAME, theme);
    } catch {
      // Pages opened from disk may have no storage; the choice then lasts until the page is closed.
    }
  }

  next(): void {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const order: Theme[] = dark ? ["system", "light", "dark"] : ["system", "dark", "light"];
    this.set(order[(order.indexOf(this.value) + 1) % order.length]);
  }
}

function keptTheme(): string | null {
  try {
    return localStorage.getItem(NAME);
  } catch {
    return null;
  }
}

export const theme = new ThemeChoice();
