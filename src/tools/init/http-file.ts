import type { SampleRequest } from './sample-requests.ts';

/**
 * The requests as a file for the HTTP clients of editors (VS Code REST Client, JetBrains). These clients cannot sign,
 * so requests for resources with an owner need `custos call`.
 */
export function httpFile(
  requests: readonly SampleRequest[],
  { baseUrl, appId, appSecret }: { baseUrl: string; appId: string; appSecret: string },
): string {
  const head = [
    '# Requests to a sandbox: npx custos sandbox --seed-data',
    '# Its certificate authority is the file that it prints. Requests that need a signature: npx custos call --sign alice …',
    `@baseUrl = ${baseUrl}`,
    `@appId = ${appId}`,
    `@appSecret = ${appSecret}`,
  ];
  return `${[head.join('\n'), ...requests.map(requestText)].join('\n\n')}\n`;
}

function requestText(request: SampleRequest): string {
  const { name, summary, method, body, hasCredentials } = request;
  return [
    `### ${name}`,
    ...(summary === '' ? [] : [`# ${summary}`]),
    `${method} {{baseUrl}}${targetOf(request)}`,
    // The clients encode the pair themselves.
    ...(hasCredentials ? ['Authorization: Basic {{appId}} {{appSecret}}', 'service-app-id: {{appId}}'] : []),
    ...(body === undefined ? [] : ['Content-Type: application/json', '', JSON.stringify(body, undefined, 2)]),
  ].join('\n');
}

function targetOf({ path, pathValues, query }: SampleRequest): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(pathValues[name] ?? name));
  const text = new URLSearchParams(query.map(([name, value]): [string, string] => [name, value])).toString();
  return text === '' ? filled : `${filled}?${text}`;
}

/** Encodes a text, but leaves variables in double braces unchanged. */
function encoded(text: string): string {
  return text.startsWith('{{') ? text : encodeURIComponent(text);
}
