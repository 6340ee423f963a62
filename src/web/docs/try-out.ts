import { asCurl, type ComposedRequest, composeRequest, firstValue, withIds } from './compose-request.ts';
import { codeBlock, element } from './element.ts';
import type { OperationDocument, Parameter, Settings } from './operation-document.ts';
import { newSuffix, signPayload, withFreshNames } from './sign-payload.ts';

/** The reader's input, which is kept while the page is open, but never stored. */
const typed = { appId: '', appSecret: '', userToken: '', privateKey: '' };

/** The form that sends the operation's request to this server. */
export function tryOut(operation: OperationDocument, settings: Settings): HTMLElement {
  const form = element('form', { class: 'try', 'aria-label': 'Try it out' }, element('h2', {}, 'Try it out'));
  const parameters = operation.parameters.filter(({ name }) => !isOwnHeader(name, settings.prefix));
  const [required, optional] = [true, false].map((isRequired) =>
    parameters.filter((parameter) => (parameter.required === true) === isRequired),
  ) as [Parameter[], Parameter[]];
  form.append(credentialFields(operation, settings));
  form.append(...required.map((parameter) => parameterField(parameter, settings)));
  if (optional.length > 0) {
    const title = element('summary', {}, `Optional parameters (${optional.length})`);
    form.append(
      element('details', {}, title, ...optional.map((parameter) => parameterField(parameter, settings))),
    );
  }
  form.append(...bodyFields(operation, settings));
  if (parametersSign(operation, settings)) form.append(signerFields(settings));
  const result = element('div', { class: 'result', 'aria-live': 'polite' });
  form.append(
    element(
      'p',
      {},
      element('button', { type: 'submit' }, 'Send'),
      ' ',
      element('button', { type: 'button', class: 'second' }, 'Show as curl'),
    ),
    result,
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void perform(form, operation, settings).then((shown) => result.replaceChildren(...shown));
  });
  form.querySelector('button.second')?.addEventListener('click', () => {
    void showCurl(form, operation, settings).then((shown) => result.replaceChildren(...shown));
  });
  return form;
}

/** Whether a header is determined by the credentials or the signers. */
function isOwnHeader(name: string, prefix: string): boolean {
  return name === `${prefix}-app-id` || name === `${prefix}-authorization-signature`;
}

function parametersSign({ parameters }: OperationDocument, { prefix }: Settings): boolean {
  return parameters.some(({ name }) => name === `${prefix}-authorization-signature`);
}

let fieldCount = 0;

function field(label: string, input: HTMLElement): HTMLElement {
  fieldCount += 1;
  input.id = `field-${fieldCount}`;
  return element('p', { class: 'field' }, element('label', { for: input.id }, label), input);
}

function textInput(name: string, value: string, type = 'text'): HTMLInputElement {
  const input = element('input', { name, type, autocomplete: 'off', spellcheck: 'false' });
  input.value = value;
  return input;
}

function parameterField(parameter: Parameter, settings: Settings): HTMLElement {
  const input = textInput(`parameter:${parameter.name}`, firstValue(parameter, settings));
  if (parameter.example !== undefined) input.placeholder = String(parameter.example);
  return field(parameter.name, input);
}

/** The fields for app id, secret and user token. They are folded if the server has filled them in. */
function credentialFields({ security }: OperationDocument, { credentials }: Settings): HTMLElement {
  const remembered = (name: keyof typeof typed, label: string, first: string, type: string) => {
    const input = textInput(name, typed[name] === '' ? first : typed[name], type);
    input.addEventListener('change', () => {
      typed[name] = input.value;
    });
    return field(label, input);
  };
  const isFilled = credentials !== undefined || typed.appId !== '';
  return element(
    'details',
    { open: !isFilled && security.length > 0 },
    element('summary', {}, isFilled ? 'Credentials (filled in)' : 'Credentials'),
    remembered('appId', 'App id', credentials?.appId ?? '', 'text'),
    remembered('appSecret', 'App secret', credentials?.appSecret ?? '', 'password'),
    ...(security.includes('userToken')
      ? [remembered('userToken', 'Access token of a user, instead of the secret', '', 'password')]
      : []),
  );
}

function bodyFields({ requestBody }: OperationDocument, { ids }: Settings): HTMLElement[] {
  const [content] = Object.values(requestBody?.content ?? {});
  if (content === undefined) return [];
  const examples = Object.entries(content.examples ?? {});
  const body = element('textarea', { name: 'body', rows: '10', spellcheck: 'false' });
  const fill = (name: string): void => {
    const example = withIds(content.examples?.[name]?.value ?? {}, ids);
    body.value = JSON.stringify(withFreshNames(example, newSuffix()), null, 2);
  };
  fill(examples[0]?.[0] ?? '');
  if (examples.length < 2) return [field('Body', body)];
  const select = element(
    'select',
    {},
    ...examples.map(([name, { summary }]) => element('option', { value: name }, summary ?? name)),
  );
  select.addEventListener('change', () => fill(select.value));
  return [field('Example', select), field('Body', body)];
}

function signerFields({ signers }: Settings): HTMLElement {
  const own = textInput('privateKey', typed.privateKey, 'password');
  own.addEventListener('change', () => {
    typed.privateKey = own.value;
  });
  const boxes = signers.map(({ name }) =>
    element(
      'label',
      { class: 'signer' },
      element('input', { type: 'checkbox', name: 'signer', value: name }),
      ` ${name}`,
    ),
  );
  return element(
    'fieldset',
    {},
    element('legend', {}, 'Sign as'),
    element('p', {}, element('a', { href: '/docs/guides/first-request#what-is-signed' }, 'What is signed')),
    ...boxes,
    field('Another private key (P-256, PKCS#8 in base64; it stays in this page)', own),
  );
}

async function requestOf(
  form: HTMLFormElement,
  operation: OperationDocument,
  settings: Settings,
): Promise<ComposedRequest> {
  const data = new FormData(form);
  const text = (name: string): string => String(data.get(name) ?? '').trim();
  const parameters = Object.fromEntries(
    operation.parameters.map(({ name }) => [name, text(`parameter:${name}`)]),
  );
  const body = data.has('body') ? text('body') : undefined;
  const filled = {
    parameters,
    body,
    appId: text('appId'),
    appSecret: text('appSecret'),
    userToken: text('userToken'),
  };
  const request = composeRequest(operation, filled, { origin: location.origin, prefix: settings.prefix });
  const chosen = new Set(data.getAll('signer'));
  const keys = settings.signers.filter(({ name }) => chosen.has(name)).map(({ privateKey }) => privateKey);
  if (text('privateKey') !== '') keys.push(text('privateKey'));
  if (keys.length === 0) return request;
  const signatures = await Promise.all(keys.map((key) => signPayload(request.payload, key)));
  const headers = {
    ...request.headers,
    [`${settings.prefix}-authorization-signature`]: signatures.join(','),
  };
  return { ...request, headers };
}

async function perform(
  form: HTMLFormElement,
  operation: OperationDocument,
  settings: Settings,
): Promise<HTMLElement[]> {
  try {
    const { method, url, headers, body = null } = await requestOf(form, operation, settings);
    const startMs = performance.now();
    const response = await fetch(url, { method, headers, body, credentials: 'omit' });
    const answered = await response.text();
    const tookMs = Math.round(performance.now() - startMs);
    const id = response.headers.get('x-request-id');
    const line = `${response.status} ${response.statusText} in ${tookMs} ms${id === null ? '' : `, request ${id}`}`;
    return [
      element('p', { class: response.ok ? 'good' : 'bad' }, line),
      codeBlock(indented(answered), 'Response'),
    ];
  } catch (error) {
    return [problem(error)];
  }
}

async function showCurl(
  form: HTMLFormElement,
  operation: OperationDocument,
  settings: Settings,
): Promise<HTMLElement[]> {
  try {
    return [codeBlock(asCurl(await requestOf(form, operation, settings)), 'Command')];
  } catch (error) {
    return [problem(error)];
  }
}

function problem(error: unknown): HTMLElement {
  return element(
    'p',
    { class: 'bad' },
    `Not sent: ${error instanceof Error ? error.message : String(error)}`,
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
