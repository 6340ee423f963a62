import { highlight } from './highlight.ts';

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

/** Formats a string of the API document. Backticks in it mark code. */
export function prose(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const [position, part] of text.split('`').entries()) {
    fragment.append(position % 2 === 1 ? element('code', {}, part) : part);
  }
  return fragment;
}

/** Splits source code into elements with one class per kind of token. */
function colored(text: string, language: string): Child[] {
  return highlight(text, language).map((token) =>
    token.kind === undefined ? token.text : element('span', { class: `hl-${token.kind}` }, token.text),
  );
}

/** Returns a block of code, which can be scrolled with the keyboard. */
export function codeBlock(text: string, label: string, language = 'json'): HTMLPreElement {
  return element(
    'pre',
    { tabindex: '0', role: 'region', 'aria-label': label },
    element('code', {}, ...colored(text, language)),
  );
}

/** Returns a button that copies a string and confirms that for a moment. */
export function copyButton(read: () => string, what: string): HTMLButtonElement {
  const button = element(
    'button',
    { type: 'button', class: 'plain copy', 'aria-label': `Copy ${what}` },
    'Copy',
  );
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(read()).then(
      () => announce(button, 'Copied'),
      () => announce(button, 'Not copied'),
    );
  });
  return button;
}

function announce(button: HTMLButtonElement, text: string): void {
  button.textContent = text;
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 1_500);
}

/** Returns buttons of which one is selected. The keyboard works as in a tab list. */
export function tabList(
  label: string,
  tabs: readonly { readonly id: string; readonly title: string }[],
  chosen: string,
  choose: (id: string) => void,
): HTMLElement {
  const list = element('div', { role: 'tablist', class: 'tabs', 'aria-label': label });
  const buttons = tabs.map(({ id, title }) => {
    const button = element('button', { type: 'button', role: 'tab', class: 'plain' }, title);
    button.addEventListener('click', () => select(id));
    return button;
  });
  const select = (id: string): void => {
    for (const [position, button] of buttons.entries()) {
      const isChosen = tabs[position]?.id === id;
      button.setAttribute('aria-selected', String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
    }
    choose(id);
  };
  list.addEventListener('keydown', ({ key }) => {
    const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0;
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = (at + step + buttons.length) % buttons.length;
    if (step === 0 || at === -1) return;
    buttons[next]?.focus();
    buttons[next]?.click();
  });
  list.append(...buttons);
  select(chosen);
  return list;
}
