type Child = Node | string | undefined;
type Attributes = Readonly<Record<string, string | boolean | undefined>>;

/** Creates an element. Attributes that are undefined or false are omitted. Strings among the children become text. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** Formats text of the document. Backticks in it mark code. */
export function prose(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const [position, part] of text.split('`').entries()) {
    fragment.append(position % 2 === 1 ? element('code', {}, part) : part);
  }
  return fragment;
}

/** A block of code, which can be scrolled with the keyboard. */
export function codeBlock(text: string, label: string): HTMLPreElement {
  return element('pre', { tabindex: '0', role: 'region', 'aria-label': label }, element('code', {}, text));
}
