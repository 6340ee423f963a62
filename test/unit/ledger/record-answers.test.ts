import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRecords } from '../../ledger/ledger.ts';

const recorder = join(import.meta.dirname, '..', '..', 'ledger', 'record-answers.ts');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-ledger-test-'));
  const routes = [
    ['GET', '/v1/users/{user_id}', 'getUser'],
    ['GET', '/v1/users/search', 'searchUsers'],
    ['POST', '/v1/users', 'createUser'],
  ];
  writeFileSync(join(folder, 'routes.json'), JSON.stringify(routes));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A server in another process that responds with the status and code in the query, and its client. */
async function serve(
  requests: readonly [method: string, target: string][],
  ...argv: string[]
): Promise<void> {
  const program = `
    import { createServer } from 'node:http';
    const server = createServer((request, response) => {
      const { searchParams } = new URL(request.url, 'http://localhost');
      const code = searchParams.get('code') ?? undefined;
      response.writeHead(Number(searchParams.get('status') ?? 200));
      response.end(JSON.stringify({ error: 'no', code }));
    }).listen(0, '127.0.0.1', async () => {
      const origin = 'http://127.0.0.1:' + server.address().port;
      for (const [method, target] of ${JSON.stringify(requests)}) await fetch(origin + target, { method });
      server.closeAllConnections();
      server.close();
    });`;
  const script = join(folder, 'serve.mjs');
  writeFileSync(script, program);
  await promisify(execFile)(process.execPath, [`--import=${recorder}`, script, ...argv], {
    env: { TEST_LEDGER: folder, TEST_LEDGER_FILE: 'some.test.ts' },
  });
}

test('each answer is recorded by its operation, status and code, once', async () => {
  await serve([
    ['GET', '/v1/users/search?status=200'],
    ['GET', '/v1/users/one'],
    ['GET', '/v1/users/two'],
    ['GET', '/api/v1/users/one/?status=404'],
    ['POST', '/v1/users?status=400&code=invalid_data'],
    ['POST', '/v1/users?status=409&code=resource_conflict'],
  ]);
  expect(readRecords(folder)).toEqual({
    'some.test.ts': [
      'createUser 400 invalid_data',
      'createUser 409 resource_conflict',
      'getUser 200',
      'getUser 404',
      'searchUsers 200',
    ],
  });
});

test('requests without an operation are not recorded', async () => {
  await serve([
    ['GET', '/v1/nothing?status=404'],
    ['DELETE', '/v1/users?status=405'],
    ['GET', '/v1/users/one/accounts'],
  ]);
  expect(readRecords(folder)).toEqual({});
});

test('the mock server runs no operation, so nothing it answers is recorded', async () => {
  await serve([['GET', '/v1/users/one']], 'mock');
  expect(readRecords(folder)).toEqual({});
});
