import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { announceSandbox } from '../../../src/tools/client/running-sandboxes.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, serveCustos, startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { startSandbox } from '../../support/sandbox.ts';

const sign = (message: string) => ({ method: 'personal_sign', params: { message, encoding: 'utf-8' } });
const recipient = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .publicKey.export({ format: 'der', type: 'spki' })
  .toString('base64');
const noHelp = {
  chain_type: 'ethereum',
  rules: [
    {
      name: 'No help',
      method: 'personal_sign',
      action: 'DENY',
      conditions: [{ field_source: 'message', field: 'content', operator: 'eq', value: 'help' }],
    },
    {
      name: 'Anything else',
      method: '*',
      action: 'ALLOW',
      conditions: [{ field_source: 'system', field: 'current_unix_timestamp', operator: 'gt', value: '0' }],
    },
  ],
};

function draftIn(folder: string, draft: unknown = noHelp): string {
  const file = join(folder, 'draft.json');
  writeFileSync(file, typeof draft === 'string' ? draft : JSON.stringify(draft));
  return file;
}

test('a draft is evaluated through a running sandbox, its admin port or its folder', async () => {
  const data = temporaryFolder();
  const draft = draftIn(data);
  const custos = await serveCustos([
    ...['sandbox', '--data', data, '--seed', 'demo', '--clock', 'frozen', '--admin-port', '0'],
  ]);
  const { body: wallet } = await custos.call<{ id: string }>('POST', '/v1/wallets', {
    chain_type: 'ethereum',
  });
  for (const message of ['hello', 'help']) {
    const { status } = await custos.call('POST', `/v1/wallets/${wallet.id}/rpc`, sign(message));
    expect(status).toBe(200);
  }
  const replay = ['policy', 'replay', '--draft', draft, '--wallet', wallet.id];
  const table = await runCommand([...replay, '--ready-file', custos.readyFile]);
  expect(table).toEqual({ code: 0, stdout: expect.any(String), stderr: '' });
  const [summary, empty, head, row, ...rest] = table.stdout.split('\n');
  expect([summary, empty, rest]).toEqual([
    '2 requests evaluated, 1 decision would change: 0 newly allowed, 1 newly denied',
    '',
    [''],
  ]);
  expect(head!.split(/ {2,}/)).toEqual(['time', 'method', 'decision', 'rule', 'request']);
  expect(row!.split(/ {2,}/)).toEqual([
    // The third request that moved the frozen clock.
    '2026-01-01T00:00:00.003Z',
    'personal_sign',
    'allowed -> denied',
    'No help',
    expect.stringMatching(/^[0-9a-f-]{36}$/),
  ]);

  const asJson = async (...more: string[]) => {
    const { code, stdout, stderr } = await runCommand([...replay, ...more, '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as object;
  };
  const reported = await asJson('--ready-file', custos.readyFile);
  expect(reported).toMatchObject({
    wallet_id: wallet.id,
    judged: 2,
    changed: 1,
    newly_denied: 1,
    skipped: 0,
  });
  expect(await asJson('--admin-url', custos.ready.admin_url!)).toEqual(reported);
  expect(await asJson('--ready-file', custos.readyFile, '--since', '2026-01-02')).toMatchObject({
    judged: 0,
    changed: 0,
    changes: [],
  });
  const missing = await runCommand([
    ...['policy', 'replay', '--draft', draft, '--wallet', 'nothing', '--ready-file', custos.readyFile],
  ]);
  expect(missing).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('returned 404: Wallet not found'),
  });

  const linted = await runCommand(['policy', 'lint', draft, '--ready-file', custos.readyFile]);
  expect(linted).toEqual({
    code: 1,
    stdout: expect.stringContaining('key_export: the private key'),
    stderr: '',
  });
  const absent = await runCommand(['policy', 'lint', 'absent.json', '--ready-file', custos.readyFile]);
  expect(absent).toMatchObject({ code: 2, stderr: expect.stringContaining('got `absent.json`: ENOENT') });
  const byAdmin = ['policy', 'lint', draft, '--admin-url', custos.ready.admin_url!, '--strict', '--json'];
  const strictly = await runCommand(byAdmin);
  expect(JSON.parse(strictly.stdout)).toMatchObject({ policy_id: 'draft', strict_methods: true, gaps: [] });
  expect(strictly.code).toBe(0);

  // A stopped server has stored every record.
  await custos.call('POST', `/v1/wallets/${wallet.id}/rpc`, sign('help'));
  await custos.stop();
  expect(await asJson('--data', data)).toMatchObject({ judged: 3, changed: 2 });
  const gone = await runCommand([...replay, '--admin-url', custos.ready.admin_url!]);
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be reached') });
});

test('the production server answers on its admin port, only to programs on the same machine', async () => {
  const url = await freshPostgres();
  const app = JSON.parse(
    (await runCommand(['apps', 'create', '--name', 'Acme', '--json'], { env: { DATABASE_URL: url } })).stdout,
  ) as { id: string; secret: string };
  const custos = await startCustos(['serve'], {
    env: {
      DATABASE_URL: url,
      CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
      CUSTOS_HOST: '127.0.0.1',
      CUSTOS_PORT: '0',
      CUSTOS_ADMIN_PORT: '0',
      CUSTOS_DRAIN_SECONDS: '0',
      CUSTOS_TRUST_PROXY: '127.0.0.1',
      CUSTOS_PUBLIC_URLS: 'https://api.example.com',
    },
  });
  const readyLine = () =>
    custos
      .output()
      .stdout.split('\n')
      .find((line) => line.includes('"msg":"ready"'));
  await waitFor(() => readyLine() !== undefined || custos.process.exitCode !== null);
  const ready = JSON.parse(readyLine() ?? '{}') as { url: string; admin: string };
  const call = async (path: string, body: object) => {
    const answer = await fetch(ready.url.replace('https:', 'http:') + path, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
        'service-app-id': app.id,
        'content-type': 'application/json',
        'x-forwarded-proto': 'https',
      },
      body: JSON.stringify(body),
    });
    return { status: answer.status, id: answer.headers.get('x-request-id'), body: await answer.json() };
  };
  const policy = await call('/v1/policies', { version: '1.0', name: 'No help', ...noHelp });
  expect(policy.status).toBe(200);
  const { body: wallet } = await call('/v1/wallets', {
    chain_type: 'ethereum',
    policy_ids: [(policy.body as { id: string }).id],
  });
  const rpc = `/v1/wallets/${(wallet as { id: string }).id}/rpc`;
  expect((await call(rpc, sign('hello'))).status).toBe(200);
  const denial = await call(rpc, sign('help'));
  // In production the caller learns no more than this; the operator finds the trace by the request id.
  expect(denial).toMatchObject({
    status: 400,
    body: { error: 'RPC request denied due to policy violation.', code: 'policy_violation' },
  });
  expect(denial.body).not.toHaveProperty('data');

  // Text that PostgreSQL cannot store is refused before.
  for (const [path, body] of [
    ['/v1/wallets/x%00/rpc', sign('hello')],
    ['/v1/key_quorums', { public_keys: [recipient], display_name: 'a\0b' }],
  ] as const) {
    const nul = await call(path, body);
    expect({ path, status: nul.status, body: nul.body }).toMatchObject({
      path,
      status: 400,
      body: { code: 'invalid_data', error: expect.stringContaining('U+0000') },
    });
  }
  // A message that is only signed may contain it.
  expect((await call(rpc, sign('hel\0lo'))).status).toBe(200);
  const credentials = `Basic ${Buffer.from(`${app.id}\0:x`).toString('base64')}`;
  const asNobody = await fetch(`${ready.url.replace('https:', 'http:')}/v1/wallets`, {
    headers: { authorization: credentials, 'service-app-id': app.id, 'x-forwarded-proto': 'https' },
  });
  expect(asNobody.status).toBe(401);

  const analysis = async (path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${ready.admin}/policies/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  expect(await analysis(`traces/${denial.id}`)).toMatchObject({
    status: 200,
    body: { decision: 'denied', request: sign('help'), policies: [{ allowed: false }] },
  });
  const asked = { wallet_id: (wallet as { id: string }).id, request: sign('help') };
  expect(await analysis('explain', asked)).toMatchObject({
    status: 200,
    body: { decision: 'denied', policies: [{ recomputed: { units: [{ outcome: 'denied_by_rule' }] } }] },
  });
  expect(await analysis('explain', asked, { origin: 'https://evil.example' })).toMatchObject({ status: 404 });
  const withNul = { status: 400, body: { code: 'invalid_data', error: expect.stringContaining('U+0000') } };
  expect(await analysis('explain', { ...asked, wallet_id: 'a\0b' })).toMatchObject(withNul);
  expect(await analysis('traces/%00')).toMatchObject(withNul);
  expect(await analysis('elsewhere', asked)).toMatchObject({ status: 404 });
  expect((await fetch(`${ready.admin}/policies/../_sandbox/reset`, { method: 'POST' })).status).toBe(405);

  const draft = draftIn(temporaryFolder(), { chain_type: 'ethereum', rules: noHelp.rules.slice(1) });
  const replay = ['policy', 'replay', '--draft', draft, '--wallet', asked.wallet_id, '--json'];
  const throughPort = await runCommand([...replay, '--admin-url', ready.admin]);
  expect(throughPort).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(throughPort.stdout)).toMatchObject({ judged: 3, changed: 1, newly_allowed: 1 });
  await custos.stop();
  const onDatabase = await runCommand(replay, { env: { DATABASE_URL: url } });
  expect(onDatabase.stdout).toBe(throughPort.stdout);
});

describe('without a place', () => {
  const { TMPDIR } = process.env;
  beforeEach(() => {
    // Apart from the sandboxes that run on this machine.
    process.env.TMPDIR = temporaryFolder();
  });
  afterEach(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });

  test('asks for a database if no sandbox runs', async () => {
    const file = draftIn(temporaryFolder(), noHelp);
    const { code, stderr } = await runCommand(['policy', 'replay', '--draft', file, '--wallet', 'any']);
    expect(code).toBe(2);
    expect(stderr).toContain('DATABASE_URL is missing');
  });

  test('without a place: uses the running sandbox, as other commands do', async () => {
    await using sandbox = await startSandbox();
    const { baseUrl, caFile, appId, appSecret, prefix } = sandbox;
    const withdraw = announceSandbox({
      ...{ base_url: baseUrl, ca_file: caFile, data: null, app_id: appId, app_secret: appSecret },
      ...{ prefix, version: '0.1.0' },
    });
    const file = draftIn(temporaryFolder(), noHelp);
    const replay = ['policy', 'replay', '--draft', file, '--wallet', 'ext_wal_acme-ethereum', '--json'];
    const { code, stdout } = await runCommand(replay);
    withdraw();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ judged: 0 });
  });
});

test.each([
  ['no JSON', '{', [], '--draft'],
  ['no policy', { chain_type: 'ethereum' }, [], 'an object with chain_type and rules'],
  ['no time', noHelp, ['--since', 'yesterday'], '--since: expected a time'],
  ['no URL', noHelp, ['--admin-url', '127.0.0.1:9464'], '--admin-url: expected an http(s) URL'],
  [
    'two places',
    noHelp,
    ['--admin-url', 'http://127.0.0.1:1', '--data', 'x'],
    'expected only one of --url, --ready-file, --admin-url and --data',
  ],
] as const)('wrong usage: %s', async (_, draft, flags, reported) => {
  const file = draftIn(temporaryFolder(), draft);
  const { code, stdout, stderr } = await runCommand([
    ...['policy', 'replay', '--draft', file, '--wallet', 'any', ...flags],
  ]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(reported);
});
