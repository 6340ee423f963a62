import { codeBlock, element, prose } from './element.ts';
import type {
  Content,
  Example,
  OperationDocument,
  Parameter,
  Response,
  Settings,
} from './operation-document.ts';
import { kindOf, rulesOf } from './schema-facts.ts';
import { schemaTree } from './schema-tree.ts';
import { tryOut } from './try-out.ts';

const SECURITY: Readonly<Record<string, string>> = {
  appCredentials: 'the app id and secret',
  userToken: 'an access token of a user',
  appOrigin: 'a page of the app, without the secret',
  oauthClient: 'an OAuth client, with its credentials in the body',
};

/** The page of an operation or event. */
export function operationPage(operation: OperationDocument, settings: Settings): HTMLElement {
  const { summary, method, path, event, description } = operation;
  const text = element(
    'div',
    { class: 'text' },
    element('h1', { tabindex: '-1' }, summary),
    element(
      'p',
      { class: 'line' },
      element('code', {}, path === undefined ? `${event}` : `${method} ${path}`),
    ),
    element('p', { class: 'id' }, 'Operation ', element('code', {}, operation.id), whoMayCall(operation)),
    description === undefined ? undefined : element('p', {}, prose(description)),
    ...parameterSection(operation),
    ...bodySection(operation),
    ...(path === undefined ? [] : responseSections(operation)),
  );
  const page = element('article', { class: 'operation' }, text);
  if (path !== undefined) page.append(tryOut(operation, settings));
  return page;
}

function whoMayCall({ security, path }: OperationDocument): string {
  if (path === undefined) return ', sent to the endpoints of an app.';
  if (security.length === 0) return ', open to all.';
  return `, for ${security.map((name) => SECURITY[name] ?? name).join(', or ')}.`;
}

function parameterSection({ parameters, schemas }: OperationDocument): HTMLElement[] {
  if (parameters.length === 0) return [];
  const items = parameters.flatMap((parameter) => [
    element(
      'dt',
      {},
      element('code', { class: 'name' }, parameter.name),
      element('span', { class: 'kind' }, ` ${kindOf(parameter.schema, schemas)} in ${parameter.in}`),
      parameter.required === true ? element('span', { class: 'required' }, ' required') : undefined,
    ),
    element('dd', {}, prose([parameter.description ?? '', ...factsOf(parameter, schemas)].join(' '))),
  ]);
  return [element('h2', {}, 'Parameters'), element('dl', {}, ...items)];
}

function factsOf({ schema }: Parameter, schemas: OperationDocument['schemas']): string[] {
  const values = schema.enum?.map((value) => `\`${String(value)}\``).join(', ');
  const rules = rulesOf(schema, schemas);
  return [
    ...(values === undefined ? [] : [`One of ${values}.`]),
    ...(rules.length === 0 ? [] : [`(${rules.join(' · ')})`]),
  ];
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

function responseSections({ responses, schemas }: OperationDocument): HTMLElement[] {
  const entries = Object.entries(responses);
  const successes = entries.filter(([status]) => status.startsWith('2'));
  const errors = entries.filter(([status]) => !status.startsWith('2'));
  return [
    ...successes.flatMap(([status, { description, content = {} }]) => [
      element('h2', {}, `Response ${status}`),
      element('p', {}, prose(description)),
      ...contentParts(content, schemas, `Response ${status}`),
    ]),
    ...(errors.length === 0 ? [] : [element('h2', {}, 'Errors'), errorTable(errors)]),
  ];
}

function errorTable(errors: readonly (readonly [string, Response])[]): HTMLElement {
  const rows = errors.flatMap(([status, { content = {} }]) =>
    Object.values(content)
      .flatMap(({ examples = {} }) => Object.entries(examples))
      .map(([name, { value }]) => {
        const { error = '', code = '' } = value as { error?: string; code?: string };
        const message = name === code ? error : `${error} (${name})`;
        return element(
          'tr',
          {},
          element('td', {}, status),
          element('td', {}, element('code', {}, code)),
          element('td', {}, message),
        );
      }),
  );
  const head = ['Status', 'Code', 'Message'].map((title) => element('th', { scope: 'col' }, title));
  return element(
    'div',
    { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Errors' },
    element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows)),
  );
}
