import { sampleLanguages } from './code-samples.ts';
import { sampleOf } from './compose-request.ts';
import { codeBlock, copyButton, element, tabList } from './element.ts';
import type { OperationDocument, Settings } from './operation-document.ts';
import { pageUrl } from './page-url.ts';
import { signedRequest, type TryForm, tryForm } from './try-out.ts';

const LANGUAGE = 'custos-docs-language';

/** Returns the language that the reader last selected. The browser may not allow storing it. */
function chosenLanguage(): string {
  try {
    const stored = localStorage.getItem(LANGUAGE);
    return sampleLanguages.find(({ id }) => id === stored)?.id ?? 'sh';
  } catch {
    return 'sh';
  }
}

function keepLanguage(id: string): void {
  try {
    localStorage.setItem(LANGUAGE, id);
  } catch {
    // The selection then lasts only until the page is closed.
  }
}

/** Returns the third column: code in five languages, the form from which it is written, and the response. */
export function requestPanel(operation: OperationDocument, settings: Settings): HTMLElement {
  const filled = tryForm(operation, settings);
  const answer = answerCard(operation);
  return element(
    'div',
    { class: 'panel' },
    codeCard(operation, settings, filled),
    tryCard(operation, settings, filled, answer.show),
    answer.card,
  );
}

function codeCard(operation: OperationDocument, settings: Settings, filled: TryForm): HTMLElement {
  const shown = element('div', { class: 'code', role: 'tabpanel', 'aria-label': 'Code' });
  let language = chosenLanguage();
  let code = '';
  const update = (): void => {
    const { write, title, file } = sampleLanguages.find(({ id }) => id === language) ?? sampleLanguages[0]!;
    try {
      const files = filled.signers().map(({ name }) => `${name.toLowerCase()}.pem`);
      const origin = settings.origin ?? location.origin;
      code = write(sampleOf(operation, filled.read(), { ...settings, origin }, files));
    } catch {
      // While the reader types, the body may not be valid JSON. Keep the code of the last valid body.
      return;
    }
    shown.replaceChildren(codeBlock(code, `${title}, saved as ${file}`, language));
  };
  filled.form.addEventListener('input', update);
  const tabs = tabList('Language', sampleLanguages, language, (id) => {
    language = id;
    keepLanguage(id);
    update();
  });
  return element(
    'section',
    { class: 'card dark', 'aria-label': 'Code' },
    element(
      'div',
      { class: 'bar' },
      tabs,
      copyButton(() => code, 'the code'),
    ),
    shown,
  );
}

type ShowAnswer = (title: readonly (Node | string)[], body: readonly Node[]) => void;

function tryCard(
  operation: OperationDocument,
  settings: Settings,
  filled: TryForm,
  show: ShowAnswer,
): HTMLElement {
  const { form } = filled;
  const isStatic = settings.origin !== undefined;
  const send = element('button', { type: 'submit', disabled: isStatic }, 'Send');
  form.append(element('p', { class: 'actions' }, send));
  if (isStatic) {
    form.append(
      element(
        'p',
        { class: 'note' },
        'These pages have no server, so they cannot send. Run ',
        element('code', {}, 'npx custos sandbox --seed demo --seed-data'),
        ', open /docs of the sandbox, and send from there.',
      ),
    );
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (isStatic) return;
    send.disabled = true;
    void perform(operation, settings, filled, show).finally(() => {
      send.disabled = false;
    });
  });
  return element('section', { class: 'card', 'aria-label': 'Try it' }, element('h2', {}, 'Try it'), form);
}

function answerCard(operation: OperationDocument): { card: HTMLElement; show: ShowAnswer } {
  const head = element('div', { class: 'bar' });
  const body = element('div', { class: 'result' });
  const card = element(
    'section',
    { class: 'card dark', 'aria-label': 'Answer', 'aria-live': 'polite' },
    head,
    body,
  );
  const [status, response] = Object.entries(operation.responses).find(([code]) => code.startsWith('2')) ?? [];
  const [content] = Object.values(response?.content ?? {});
  const [example] = Object.values(content?.examples ?? {});
  head.append(element('span', {}, 'Example answer '), statusLabel(status ?? '', true));
  if (example !== undefined) body.append(codeBlock(indented(example.value), 'Example answer'));
  else body.append(element('p', { class: 'note' }, response?.description ?? 'No content.'));
  return {
    card,
    show(title, shown) {
      head.replaceChildren(...title);
      body.replaceChildren(...shown);
      card.scrollIntoView({ block: 'nearest' });
    },
  };
}

function statusLabel(text: string, isGood: boolean): HTMLElement {
  return element('span', { class: isGood ? 'label good' : 'label bad' }, text);
}

async function perform(
  operation: OperationDocument,
  settings: Settings,
  filled: TryForm,
  show: ShowAnswer,
): Promise<void> {
  try {
    const request = await signedRequest(filled, operation, settings);
    const { method, url, headers, body = null } = request;
    const startMs = performance.now();
    const response = await fetch(url, { method, headers, body, credentials: 'omit' });
    const answered = await response.text();
    const tookMs = Math.round(performance.now() - startMs);
    show(
      [
        'Answer ',
        statusLabel(`${response.status} ${response.statusText}`.trim(), response.ok),
        ` ${tookMs} ms`,
        ...linksOf(response, answered, settings),
      ],
      [
        codeBlock(indented(answered), 'Answer'),
        ...(filled.signers().length === 0 ? [] : [signedDetails(filled, request.payload)]),
      ],
    );
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    show([statusLabel('Not sent', false)], [element('p', { class: 'note' }, message)]);
  }
}

/** Returns links to the page of the error code and, in a sandbox, to the inspector's page that explains the request. */
function linksOf(response: Response, answered: string, { caFile }: Settings): HTMLElement[] {
  const code = response.ok ? undefined : codeIn(answered);
  const id = response.headers.get('x-request-id');
  return [
    ...(code === undefined ? [] : [element('a', { href: errorUrl(code) }, code)]),
    ...(id === null || caFile === undefined
      ? []
      : [element('a', { href: `/#/requests/${id}` }, response.ok ? 'Inspect' : 'Why?')]),
  ];
}

/** Returns the address of an error code's page. */
export function errorUrl(code: string): string {
  return pageUrl(`errors/${code}`);
}

function codeIn(answered: string): string | undefined {
  try {
    const { code } = JSON.parse(answered) as { code?: string };
    return code;
  } catch {
    return undefined;
  }
}

function signedDetails(filled: TryForm, payload: string): HTMLElement {
  const names = filled.signers().map(({ name }) => name);
  return element(
    'details',
    {},
    element('summary', {}, `Signed as ${names.join(' and ')}: what was signed`),
    codeBlock(payload, 'The signed payload'),
  );
}

function indented(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}
