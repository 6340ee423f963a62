import { codeBlock, copyButton, element, prose } from './element.ts';
import type { Content, Example, OperationDocument, Response, Settings } from './operation-document.ts';
import { errorUrl, requestPanel } from './request-panel.ts';
import { parameterTree, schemaTree } from './schema-tree.ts';

const SECURITY: Readonly<Record<string, string>> = {
  appCredentials: 'the app id and secret',
  userToken: 'an access token of a user',
  appOrigin: 'a page of the app, without the secret',
  oauthClient: 'an OAuth client, with its credentials in the body',
};

/** Returns the page of an operation or event. */
export function operationPage(operation: OperationDocument, settings: Settings): HTMLElement {
  const { summary, method, path, event, tag, description } = operation;
  const text = element(
    'div',
    { class: 'text' },
    element('p', { class: 'crumb' }, path === undefined ? 'Events' : titleOf(tag)),
    element('h1', { tabindex: '-1' }, summary),
    path === undefined
      ? element('p', { class: 'line' }, element('code', {}, event))
      : element(
          'p',
          { class: 'line' },
          element('span', { class: `method ${method.toLowerCase()}` }, method),
          element('code', {}, path),
          copyButton(() => path, 'the path'),
        ),
    element('p', { class: 'quiet' }, element('code', {}, operation.id), whoMayCall(operation)),
    ...paragraphs(description),
    ...parameterSection(operation, settings.prefix),
    ...bodySection(operation),
    ...(path === undefined ? [] : responseSections(operation)),
  );
  const page = element('article', { class: 'operation' }, text);
  page.append(path === undefined ? eventPanel(operation) : requestPanel(operation, settings));
  return page;
}

function titleOf(tag: string): string {
  const words = tag.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const LONG = 320;

/**
 * Splits a description into paragraphs. In the API document, a long description is one paragraph, so it is split
 * between sentences.
 */
function paragraphs(description: string | undefined): HTMLElement[] {
  if (description === undefined) return [];
  const parts: string[] = [];
  for (const sentence of description.split(/(?<=\.)\s+(?=[A-Z`])/)) {
    const last = parts.at(-1);
    const isOpen = last !== undefined && last.length + sentence.length < LONG;
    if (isOpen) parts[parts.length - 1] = `${last} ${sentence}`;
    else parts.push(sentence);
  }
  return parts.map((part) => element('p', {}, prose(part)));
}

function whoMayCall({ security, path }: OperationDocument): string {
  if (path === undefined) return ' is sent to the endpoints of an app.';
  if (security.length === 0) return ' is open to all.';
  return ` needs ${security.map((name) => SECURITY[name] ?? name).join(', or ')}.`;
}

function parameterSection({ parameters, schemas }: OperationDocument, prefix: string): HTMLElement[] {
  // Credentials are described on the start page, once for all operations.
  const own = parameters.filter(({ name }) => name !== `${prefix}-app-id`);
  if (own.length === 0) return [];
  return [element('h2', {}, 'Parameters'), parameterTree(own, schemas)];
}

function bodySection({ requestBody, schemas, path }: OperationDocument): HTMLElement[] {
  if (requestBody === undefined) return [];
  const title = path === undefined ? 'Payload' : 'Body';
  return [element('h2', {}, title), ...contentParts(requestBody.content, schemas, title)];
}

function contentParts(
  contents: Readonly<Record<string, Content>>,
  schemas: OperationDocument['schemas'],
  title: string,
): HTMLElement[] {
  return Object.entries(contents).flatMap(([type, { schema, examples = {} }]) => [
    ...(type === 'application/json' ? [] : [element('p', {}, element('code', {}, type))]),
    ...(schema === undefined ? [] : [schemaTree(schema, schemas)]),
    ...exampleParts(examples, title),
  ]);
}

function exampleParts(examples: Readonly<Record<string, Example>>, title: string): HTMLElement[] {
  return Object.entries(examples).map(([name, { summary, value }]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    const details = element(
      'details',
      { class: 'example' },
      element('summary', {}, `Example: ${summary ?? name}`),
    );
    details.addEventListener('toggle', () => {
      if (details.childElementCount === 1) details.append(codeBlock(text, `${title}: ${summary ?? name}`));
    });
    return details;
  });
}

/** Returns the third column of an event's page: the first example of its payload. */
function eventPanel({ requestBody }: OperationDocument): HTMLElement {
  const [content] = Object.values(requestBody?.content ?? {});
  const [example] = Object.values(content?.examples ?? {});
  const text = JSON.stringify(example?.value ?? {}, null, 2);
  return element(
    'div',
    { class: 'panel' },
    element(
      'section',
      { class: 'card dark', 'aria-label': 'Example' },
      element(
        'div',
        { class: 'bar' },
        element('span', {}, 'Example'),
        copyButton(() => text, 'the example'),
      ),
      codeBlock(text, 'Example of the payload'),
    ),
  );
}

function responseSections({ responses, schemas }: OperationDocument): HTMLElement[] {
  const entries = Object.entries(responses);
  const successes = entries.filter(([status]) => status.startsWith('2'));
  const errors = entries.filter(([status]) => !status.startsWith('2')).flatMap(errorRows);
  const [general, own] = [true, false].map((isGeneral) =>
    errors.filter(({ code }) => isSharedError(code) === isGeneral),
  ) as [ErrorRow[], ErrorRow[]];
  return [
    ...successes.flatMap(([status, { description, content = {} }]) => [
      element('h2', {}, `Response ${status}`),
      element('p', {}, prose(description)),
      ...contentParts(content, schemas, `Response ${status}`),
    ]),
    ...(own.length === 0 ? [] : [element('h2', {}, 'Errors'), errorTable(own)]),
    ...(general.length === 0
      ? []
      : [
          element(
            'details',
            { class: 'general' },
            element('summary', {}, `${general.length} errors that nearly all operations have`),
            errorTable(general),
          ),
        ]),
  ];
}

/** Error codes that more than half of the operations share. They say little about one operation. */
const generalErrors = new Set([
  ...[
    'request_expired',
    'https_required',
    'foreign_host',
    'too_many_requests',
    'internal_error',
    'unavailable',
  ],
  ...['missing_or_invalid_token', 'invalid_app_credentials'],
  ...['payload_too_large', 'unsupported_media_type'],
]);

/** Returns whether most operations have this error. One of these codes contains the prefix of the brand. */
function isSharedError(code: string): boolean {
  return generalErrors.has(code) || /^missing_or_invalid_\w+_app_id$/.test(code);
}

interface ErrorRow {
  readonly status: string;
  readonly code: string;
  readonly message: string;
}

function errorRows([status, { content = {} }]: readonly [string, Response]): ErrorRow[] {
  return Object.values(content)
    .flatMap(({ examples = {} }) => Object.entries(examples))
    .map(([name, { value }]) => {
      const { error = '' } = value as { error?: string };
      // The name of an example is the error code. The document has the brand of the server: `…_invalid_acme_app_id`.
      return { status, code: name, message: error };
    });
}

function errorTable(errors: readonly ErrorRow[]): HTMLElement {
  const rows = errors.map(({ status, code, message }) =>
    element(
      'tr',
      {},
      element('td', {}, status),
      element('td', {}, element('a', { href: errorUrl(code) }, element('code', {}, code))),
      element('td', {}, message),
    ),
  );
  const head = ['Status', 'Code', 'Message'].map((title) => element('th', { scope: 'col' }, title));
  return element(
    'div',
    { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Errors' },
    element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows)),
  );
}
