/** A box that scrolls sideways can be reached by the keyboard, but only where there is something to scroll to. */
export function scrollBox(box: HTMLElement): () => void {
  const look = () => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  const observer = new ResizeObserver(look);
  observer.observe(box);
  if (box.firstElementChild) observer.observe(box.firstElementChild);
  return () => observer.disconnect();
}
