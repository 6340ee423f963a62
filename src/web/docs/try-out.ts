import { type ComposedRequest, composeRequest, type Filled, firstValue, withIds } from './compose-request.ts';
import { element } from './element.ts';
import type { OperationDocument, Parameter, Settings } from './operation-document.ts';
import { pageUrl } from './page-url.ts';
import { newSuffix, signPayload, withFreshNames } from './sign-payload.ts';

/** The reader's input. It is kept while the page is open, but never stored. */
const typed = { appId: '', appSecret: '', userToken: '', privateKey: '' };

/** The form from whose input an operation's code and request are built. */
export interface TryForm {
  readonly form: HTMLFormElement;
  readonly read: () => Filled;
  /** The owners who sign: their names and private keys. */
  readonly signers: () => readonly { readonly name: string; readonly privateKey: string }[];
}

/** Builds the form. The caller adds the buttons. */
export function tryForm(operation: OperationDocument, settings: Settings): TryForm {
  const form = element('form', { class: 'try', 'aria-label': 'Try it' });
  const parameters = operation.parameters.filter(({ name }) => !isOwnHeader(name, settings.prefix));
  const [required, optional] = [true, false].map((isRequired) =>
    parameters.filter((parameter) => (parameter.required === true) === isRequired),
  ) as [Parameter[], Parameter[]];
  form.append(...required.map((parameter) => parameterField(parameter, settings)));
  form.append(...bodyFields(operation, settings));
  if (needsSignature(operation, settings)) form.append(signerFields(settings));
  if (optional.length > 0) {
    const title = element('summary', {}, `Optional parameters (${optional.length})`);
    form.append(
      element('details', {}, title, ...optional.map((parameter) => parameterField(parameter, settings))),
    );
  }
  form.append(credentialFields(operation, settings));
  return { form, read: () => filledIn(form, operation), signers: () => signersOf(form, settings) };
}

/** Composes the request of the form, with the signatures of its signers. */
export async function signedRequest(
  { read, signers }: TryForm,
  operation: OperationDocument,
  { prefix }: Settings,
): Promise<ComposedRequest> {
  const request = composeRequest(operation, read(), { origin: location.origin, prefix });
  const keys = signers();
  if (keys.length === 0) return request;
  const signatures = await Promise.all(
    keys.map(({ privateKey }) => signPayload(request.payload, privateKey)),
  );
  const headers = { ...request.headers, [`${prefix}-authorization-signature`]: signatures.join(',') };
  return { ...request, headers };
}

/** Returns whether a header is determined by the credentials or the signers. */
function isOwnHeader(name: string, prefix: string): boolean {
  return name === `${prefix}-app-id` || name === `${prefix}-authorization-signature`;
}

function needsSignature({ parameters }: OperationDocument, { prefix }: Settings): boolean {
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

/** Returns the fields for app id, secret and user token. They are folded if the server has filled them in. */
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
  const body = element('textarea', { name: 'body', rows: '7', spellcheck: 'false' });
  const fill = (name: string): void => {
    const example = withIds(content.examples?.[name]?.value ?? {}, ids);
    body.value = JSON.stringify(withFreshNames(example, newSuffix()), null, 2);
    body.rows = Math.min(14, Math.max(5, body.value.split('\n').length + 1));
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
  const guide = pageUrl('guides/first-request#what-is-signed');
  return element(
    'fieldset',
    {},
    element('legend', {}, 'Sign as'),
    ...boxes,
    element('a', { href: guide, class: 'aside' }, 'What is signed?'),
    element(
      'details',
      { open: signers.length === 0 },
      element('summary', {}, 'Another key'),
      field('Private key (P-256, PKCS#8 in base64). It stays in this page.', own),
    ),
  );
}

function textIn(form: HTMLFormElement): (name: string) => string {
  const data = new FormData(form);
  return (name) => String(data.get(name) ?? '').trim();
}

function filledIn(form: HTMLFormElement, operation: OperationDocument): Filled {
  const text = textIn(form);
  const parameters = operation.parameters.map(({ name }) => [name, text(`parameter:${name}`)]);
  return {
    parameters: Object.fromEntries(parameters),
    body: new FormData(form).has('body') ? text('body') : undefined,
    appId: text('appId'),
    appSecret: text('appSecret'),
    userToken: text('userToken'),
  };
}

function signersOf(form: HTMLFormElement, { signers }: Settings): { name: string; privateKey: string }[] {
  const chosen = new Set(new FormData(form).getAll('signer'));
  const own = textIn(form)('privateKey');
  return [
    ...signers.filter(({ name }) => chosen.has(name)),
    ...(own === '' ? [] : [{ name: 'Owner', privateKey: own }]),
  ];
}
