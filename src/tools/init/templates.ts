import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { acmeApp } from '../../../mocks/apps.ts';
import { packageName, packageRoot } from '../../config/package-root.ts';
import type { ContractDocument } from '../contract/contract-document.ts';
import { httpFile } from './http-file.ts';
import { postmanCollection } from './postman-collection.ts';
import { sampleRequests } from './sample-requests.ts';

/** A set of initial files for a project. */
export interface Template {
  readonly name: string;
  readonly summary: string;
  /** The instructions for the next steps, after the files were written. */
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
    next: 'npm install --save-dev vitest && npx vitest run test/custos.test.ts',
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

/** Returns the files of a template, in the form of this version. */
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

/** Replaces the package name, because the package may be published under another name than its command. */
function withPackageName(text: string): string {
  return text.replaceAll(/\bcustos\/testing\b/g, `${packageName()}/testing`);
}
