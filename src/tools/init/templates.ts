import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { acmeApp } from '../../../mocks/apps.ts';
import { makeFolder } from '../../config/make-folder.ts';
import { packageName, packageRoot } from '../../config/package-root.ts';
import type { ContractDocument } from '../contract/contract-document.ts';
import { postmanCollection } from './postman-collection.ts';
import { type SampleRequest, sampleRequests } from './sample-requests.ts';

/**
 * Returns the requests as a file for the HTTP clients of editors (VS Code REST Client, JetBrains). These clients
 * cannot sign requests, so for resources with an owner use `custos call`.
 */
function httpFile(
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
    // The HTTP clients encode the app id and the secret themselves.
    ...(hasCredentials ? ['Authorization: Basic {{appId}} {{appSecret}}', 'service-app-id: {{appId}}'] : []),
    ...(body === undefined ? [] : ['Content-Type: application/json', '', JSON.stringify(body, undefined, 2)]),
  ].join('\n');
}

function targetOf({ path, pathValues, query }: SampleRequest): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(pathValues[name] ?? name));
  const text = new URLSearchParams(query.map(([name, value]): [string, string] => [name, value])).toString();
  return text === '' ? filled : `${filled}?${text}`;
}

/** URL-encodes a string, but leaves variables in double braces unchanged. */
function encoded(text: string): string {
  return text.startsWith('{{') ? text : encodeURIComponent(text);
}

/** A set of initial files for a project. */
export interface Template {
  readonly name: string;
  readonly summary: string;
  /** What to do after the files were written. */
  readonly next: string;
}

/** A file of a template. `path` is relative to the project. */
export interface TemplateFile {
  readonly path: string;
  readonly text: string;
}

const webhookSecret = 'WEBHOOK_SECRET=$(npx custos listen --print-secret)';

export const templates: readonly Template[] = [
  {
    name: 'vitest',
    summary: 'tests with a sandbox in their process, with fixtures and matchers',
    next: 'npm install --save-dev vitest && npx vitest run test/custos.test.mts',
  },
  {
    name: 'jest',
    summary: 'the same with an environment for jest 30',
    next: 'npm install --save-dev jest && npx jest test/custos.test.cjs',
  },
  {
    name: 'playwright',
    summary: 'browser tests with a sandbox for each worker',
    next: 'npm install --save-dev @playwright/test && npx playwright install chromium && npx playwright test',
  },
  {
    name: 'pytest',
    summary: 'tests in Python with a sandbox for the run, with a fixture',
    next: 'pip install pytest && pytest tests/test_custos.py',
  },
  {
    name: 'go',
    summary: 'a package that starts a sandbox for tests in Go',
    next: 'go test ./custostest/',
  },
  {
    name: 'express',
    summary: 'an endpoint that verifies webhooks, with express',
    next: `npm install express standardwebhooks && ${webhookSecret} npx node webhooks/express.mts`,
  },
  {
    name: 'fastify',
    summary: 'the same with fastify',
    next: `npm install fastify standardwebhooks && ${webhookSecret} npx node webhooks/fastify.mts`,
  },
  {
    name: 'next',
    summary: 'the same as a route of Next.js',
    next: `npm install standardwebhooks && ${webhookSecret} npx next dev`,
  },
  {
    name: 'github',
    summary: 'a workflow that runs the tests beside a sandbox, and keeps their coverage of the contract',
    next: 'git add .github/workflows/custos.yml',
  },
  {
    name: 'http',
    summary: 'every example of the contract as a file for the HTTP client of an editor',
    next: 'npx custos sandbox --seed-data',
  },
  {
    name: 'postman',
    summary: 'every example of the contract as a Postman collection that signs',
    next: 'npx custos sandbox --seed-data',
  },
];

/** Returns the files of a template as this version of Custos writes them. */
export function filesOf(name: string): TemplateFile[] {
  if (name === 'http') return [{ path: 'custos.http', text: httpFile(samples(), settings) }];
  if (name === 'postman') {
    const signScript = readFileSync(join(folderOf(name), 'sign-request.js'), 'utf8');
    const collection = postmanCollection(samples(), { ...settings, signScript });
    return [
      { path: 'custos.postman_collection.json', text: `${JSON.stringify(collection, undefined, 2)}\n` },
    ];
  }
  const folder = folderOf(name);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => ({
      path: relative(folder, path),
      text: withPackageName(readFileSync(path, 'utf8')),
    }));
}

const settings = { baseUrl: 'https://127.0.0.1:4010', appId: acmeApp.id, appSecret: acmeApp.secret };

function folderOf(name: string): string {
  return join(packageRoot(), 'templates', name);
}

function samples(): ReturnType<typeof sampleRequests> {
  const text = readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8');
  return sampleRequests(JSON.parse(text) as ContractDocument);
}

/** Replaces the package name, because the package may be published under a name other than its command's. */
function withPackageName(text: string): string {
  return text.replaceAll(/\bcustos\/testing\b/g, `${packageName()}/testing`);
}

/** The outcome for one file. */
export interface Outcome {
  readonly path: string;
  readonly state: 'written' | 'replaced' | 'unchanged';
}

/**
 * Writes files into a folder. If a file already exists with other content and `force` is not set, writes nothing and
 * returns the existing files.
 */
export function writeFiles(
  folder: string,
  files: readonly TemplateFile[],
  { force }: { readonly force: boolean },
): { readonly outcomes: readonly Outcome[]; readonly inTheWay: readonly string[] } {
  const planned = files.map(({ path, text }) => {
    const file = join(folder, path);
    const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
    const state = before === undefined ? 'written' : before === text ? 'unchanged' : 'replaced';
    return { path, file, text, state } as const;
  });
  const inTheWay = planned.filter(({ state }) => state === 'replaced' && !force).map(({ path }) => path);
  if (inTheWay.length > 0) return { outcomes: [], inTheWay };
  for (const { file, text, state } of planned) {
    if (state === 'unchanged') continue;
    makeFolder(dirname(file));
    // `wx` also fails if another process has created the file since the check, so it is not overwritten.
    writeFileSync(file, text, { flag: state === 'written' ? 'wx' : 'w' });
  }
  return { outcomes: planned.map(({ path, state }) => ({ path, state })), inTheWay: [] };
}
