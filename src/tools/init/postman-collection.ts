import type { SampleRequest } from './sample-requests.ts';

interface PostmanSettings {
  readonly baseUrl: string;
  readonly appId: string;
  readonly appSecret: string;
  /** The pre-request script, which signs. */
  readonly signScript: string;
}

const schema = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/**
 * Returns the requests as a Postman collection (v2.1), with one folder per tag. Ids in paths are variables, which are
 * set from the responses of the operations that create the resources.
 */
export function postmanCollection(
  requests: readonly SampleRequest[],
  { baseUrl, appId, appSecret, signScript }: PostmanSettings,
): object {
  const tags = [...new Set(requests.map(({ tag }) => tag))];
  const ids: Record<string, string> = {};
  for (const { pathValues } of requests) {
    for (const [name, value] of Object.entries(pathValues)) ids[name] ??= value;
  }
  const variables = { baseUrl, appId, appSecret, privateKeys: '', ...ids };
  return {
    info: {
      name: 'Custos',
      description:
        'Requests to a sandbox that was started with `npx custos sandbox --seed-data`. Turn off SSL certificate verification, or trust the certificate authority that it prints. `privateKeys`: what signs requests about resources with an owner.',
      schema,
    },
    auth: {
      type: 'basic',
      basic: [
        { key: 'username', value: '{{appId}}' },
        { key: 'password', value: '{{appSecret}}' },
      ],
    },
    event: [eventOf('prerequest', signScript)],
    variable: Object.entries(variables).map(([key, value]) => ({ key, value })),
    item: tags.map((tag) => ({
      name: tag,
      item: requests.filter((request) => request.tag === tag).map((request) => itemOf(request, ids)),
    })),
  };
}

function itemOf(request: SampleRequest, ids: Readonly<Record<string, string>>): object {
  const { name, summary, method, body, hasCredentials, creates } = request;
  return {
    name,
    ...(creates === undefined ? {} : { event: [eventOf('test', keepIdScript(creates))] }),
    request: {
      method,
      description: summary,
      ...(hasCredentials ? {} : { auth: { type: 'noauth' } }),
      header: [
        ...(hasCredentials ? [{ key: 'service-app-id', value: '{{appId}}' }] : []),
        ...(body === undefined ? [] : [{ key: 'content-type', value: 'application/json' }]),
      ],
      url: urlOf(request, ids),
      ...(body === undefined
        ? {}
        : {
            body: {
              mode: 'raw',
              raw: JSON.stringify(body, undefined, 2),
              options: { raw: { language: 'json' } },
            },
          }),
    },
    response: [],
  };
}

function urlOf({ path, pathValues, query }: SampleRequest, ids: Readonly<Record<string, string>>): object {
  // A parameter that has a different value in this path does not become a variable.
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    ids[name] === pathValues[name] ? `{{${name}}}` : (pathValues[name] ?? name),
  );
  const text = query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  return {
    raw: `{{baseUrl}}${filled}${text === '' ? '' : `?${text}`}`,
    host: ['{{baseUrl}}'],
    path: filled.slice(1).split('/'),
    ...(query.length === 0 ? {} : { query: query.map(([key, value]) => ({ key, value })) }),
  };
}

function eventOf(listen: 'prerequest' | 'test', script: string): object {
  return { listen, script: { type: 'text/javascript', exec: script.trimEnd().split('\n') } };
}

function keepIdScript(variable: string): string {
  return `if (pm.response.code < 300) pm.collectionVariables.set('${variable}', pm.response.json().id);`;
}
