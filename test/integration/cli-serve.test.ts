import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { Agent } from 'undici';
import { beforeAll, expect, test } from 'vitest';
import { openBankWorld } from '../support/fiat/bank-world.ts';
import { openBridgeService } from '../support/fiat/bridge-service.ts';
import { freshPostgres } from '../support/postgres/borrow-database.ts';
import { serveSettings } from '../support/postgres/serve-settings.ts';
import { runCommand, runCustos, startCustos, temporaryFolder, waitFor } from '../support/run-custos.ts';

const folder = temporaryFolder();
let ca: string;
let settings: Record<string, string>;

beforeAll(async () => {
  ({ env: settings, ca } = await serveSettings());
});

interface ReadyLine {
  msg: string;
  url: string;
  admin: string;
}

/** Starts the production server and returns the fields of its start log line. */
async function serve(env: Record<string, string>) {
  const custos = await startCustos(['serve'], { env });
  const lines = (): ReadyLine[] => {
    const printed = custos.output().stdout.trim();
    return printed === '' ? [] : printed.split('\n').map((line) => JSON.parse(line) as ReadyLine);
  };
  const isReady = (): boolean => lines().some(({ msg }) => msg === 'ready');
  await waitFor(() => isReady() || custos.process.exitCode !== null);
  if (!isReady()) throw new Error(`serve ended: ${(await custos.ended()).stderr}`);
  return { ...custos, lines, ready: lines().find(({ msg }) => msg === 'ready')! };
}

interface App {
  id: string;
  secret: string;
}

async function call<Body>(
  url: string,
  { id, secret }: App,
  body?: object,
): Promise<{ status: number; body: Body }> {
  const agent = new Agent({ connect: { ca } });
  const answer = await agent.request({
    origin: new URL(url).origin,
    path: new URL(url).pathname,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      'service-app-id': id,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const parsed = (await answer.body.json()) as Body;
  await agent.destroy();
  return { status: answer.statusCode, body: parsed };
}

/** The URL of a database without any table. */
async function emptyPostgres(): Promise<string> {
  const url = new URL(await freshPostgres());
  const client = new Client({ connectionString: url.href });
  await client.connect();
  const name = `${url.pathname.slice(1)}_empty`;
  await client.query(`create database ${name}`);
  await client.end();
  return Object.assign(url, { pathname: `/${name}` }).href;
}

test('a database is migrated once, and serve waits for it', async () => {
  const env = { ...settings, DATABASE_URL: await emptyPostgres() };
  const early = await runCustos(['serve'], { env });
  expect(early.code).toBe(1);
  expect(early.stderr).toMatch(
    /^custos: the database lacks \d+ migration\(s\) of this version; run `custos migrate` first\n$/,
  );
  const check = await runCommand(['migrate', '--check'], { env });
  expect(check.code).toBe(1);
  expect(check.stdout).toMatch(/^pending {2}\S+/);
  const run = await runCommand(['migrate'], { env });
  expect(run.code).toBe(0);
  expect(run.stdout).toBe(check.stdout.replaceAll('pending', 'run'));
  const again = await runCommand(['migrate'], { env });
  expect(again).toMatchObject({ code: 0, stdout: 'the schema is up to date\n' });
  expect((await runCommand(['migrate', '--check'], { env })).code).toBe(0);
});

test('an app created by the command line creates a wallet and signs, across restarts', async () => {
  const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env: settings });
  const app = JSON.parse(created.stdout) as App;
  const first = await serve(settings);
  const wallet = await call<{ id: string }>(`${first.ready.url}/v1/wallets`, app, { chain_type: 'ethereum' });
  expect(wallet.status).toBe(200);
  const rpc = `/v1/wallets/${wallet.body.id}/rpc`;
  const signing = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
  const signed = await call(first.ready.url + rpc, app, signing);
  expect(signed.status).toBe(200);

  // The safeguards are on.
  const account = { type: 'custom_auth', custom_user_id: 'alice' };
  const user = await call<{ id: string; linked_accounts: { id?: string }[] }>(
    `${first.ready.url}/v1/users`,
    app,
    {
      linked_accounts: [account],
      wallets: [{ chain_type: 'ethereum' }],
    },
  );
  expect(user.status).toBe(200);
  const accounts = `${first.ready.url}/v1/users/${user.body.id}/accounts`;
  const linked = await call(accounts, app, { type: 'email', address: 'mallory@example.com' });
  expect(linked).toMatchObject({ status: 401, body: { code: 'missing_or_empty_authorization_header' } });
  const credentials = await call(`${first.ready.url}/v1/apps/${app.id}/test_credentials`, app);
  expect(credentials).toEqual({ status: 200, body: { data: [] } });
  const { code, stdout } = await first.stop();
  expect(code).toBe(0);
  expect(first.lines().at(-1)?.msg).toBe('stopped');
  for (const secret of [app.secret, settings.CUSTOS_MASTER_KEY!, 'hello'])
    expect(stdout).not.toContain(secret);

  const second = await serve(settings);
  expect(await call(second.ready.url + rpc, app, signing)).toEqual(signed);
  const rotated = await runCommand(['apps', 'rotate-secret', app.id, '--overlap', '3600', '--json'], {
    env: settings,
  });
  const newer = JSON.parse(rotated.stdout) as App;
  for (const each of [app, newer]) {
    expect((await call(second.ready.url + rpc, each, signing)).status).toBe(200);
  }
  const listed = await runCommand(['apps', 'list'], { env: settings });
  expect(listed.stdout).toMatch(new RegExp(`^Globex  ${app.id}  \\d{4}-.*Z\n$`));
  expect((await second.stop()).code).toBe(0);
});

test('a different master key is detected at start', async () => {
  const env = { ...settings, DATABASE_URL: await freshPostgres() };
  await (await serve(env)).stop();
  const { code, stderr } = await runCustos(['serve'], {
    env: { ...env, CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') },
  });
  expect(code).toBe(1);
  expect(stderr).toContain('the wallets in this database are sealed under another master key');
  expect(stderr).toContain('start with the master key that they were made with');
});

test('behind a trusted proxy the scheme in its header counts', async () => {
  const { CUSTOS_TLS_CERT: _cert, CUSTOS_TLS_KEY: _key, ...rest } = settings;
  const custos = await serve({ ...rest, CUSTOS_TRUST_PROXY: '127.0.0.1' });
  expect(custos.ready.url).toMatch(/^http:/);
  const statusOf = async (headers: Record<string, string>) =>
    (await fetch(`${custos.ready.url}/openapi.json`, { headers })).status;
  expect(await statusOf({ 'x-forwarded-proto': 'https' })).toBe(200);
  expect(await statusOf({ 'x-forwarded-proto': 'http' })).toBe(403);
  expect(await statusOf({})).toBe(403);
  expect(await (await fetch(`${custos.ready.admin}/readyz`)).json()).toEqual({ status: 'ready' });
  await custos.stop();
});

test('there is no control plane; a configured fiat provider verifies users, and its notifications hurry that', async () => {
  await using bank = openBankWorld();
  await using provider = await openBridgeService(bank.bank, bank.clock);
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const [keyFile, webhookKey] = [join(folder, 'fiat-key'), join(folder, 'webhook.pem')];
  writeFileSync(keyFile, provider.apiKey);
  writeFileSync(webhookKey, publicKey.export({ type: 'spki', format: 'pem' }));
  const env = {
    ...settings,
    CUSTOS_BRIDGE_SANDBOX_URL: provider.baseUrl,
    CUSTOS_BRIDGE_SANDBOX_KEY_FILE: keyFile,
    CUSTOS_BRIDGE_SANDBOX_WEBHOOK_KEY: webhookKey,
  };
  const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
  const app = JSON.parse(created.stdout) as App;
  const custos = await serve(env);
  const { url } = custos.ready;
  expect((await call(`${url}/_sandbox/reset`, app, {})).status).toBe(404);

  const user = await call<{ id: string }>(`${url}/v1/users`, app, {
    linked_accounts: [{ type: 'email', address: 'alice@example.com' }],
  });
  const kyc = `${url}/v1/users/${user.body.id}/kyc`;
  const data = {
    ...{ first_name: 'Alice', last_name: 'Example', date_of_birth: '1990-02-03' },
    residential_address: { street_line_1: 'Weg 12', city: 'Berlin', country: 'DEU' },
    identifying_information: [{ type: 'tin', issuing_country: 'DEU', number: '12345678901' }],
  };
  const at = { provider: 'bridge', environment: 'sandbox', client_agreement_id: 'agreement' };
  const submitted = await call<{ status: string }>(`${kyc}/submit`, app, { ...at, data });
  expect(submitted).toMatchObject({ status: 200, body: { status: 'under_review' } });
  expect((await call(`${kyc}/submit`, app, { ...at, environment: 'production', data })).status).toBe(400);
  bank.pass(2000);

  const { id } = (await bank.bank.openCustomer({
    ...{ id: undefined, kind: 'person', email: 'a@example.com' },
    reference: provider.seen.find(({ operation }) => operation === 'POST /customers')!.key!,
  })) as { id: string };
  const body = JSON.stringify({ event_category: 'customer', event_object_id: id });
  const atMs = Date.now();
  const digest = createHash('sha256').update(`${atMs}.${body}`).digest();
  const signature = `t=${atMs},v0=${sign('sha256', digest, privateKey).toString('base64')}`;
  const notify = async (path: string, header: string): Promise<number> => {
    const agent = new Agent({ connect: { ca } });
    const headers = { 'content-type': 'application/json', 'x-webhook-signature': header };
    const answer = await agent.request({ origin: url, path, method: 'POST', headers, body });
    await answer.body.dump();
    await agent.destroy();
    return answer.statusCode;
  };
  expect(await notify('/provider_hints/bridge/sandbox', signature)).toBe(200);
  expect(await notify('/provider_hints/bridge/sandbox', `t=${atMs},v0=AAAA`)).toBe(400);
  expect(await notify('/provider_hints/bridge/production', signature)).toBe(404);
  const isActive = async (): Promise<boolean> => {
    const { body: listed } = await call<{ kyc_statuses: { status: string }[] }>(kyc, app);
    return listed.kyc_statuses[0]?.status === 'active';
  };
  await expect.poll(isActive, { timeout: 60_000, interval: 250 }).toBe(true);
  const account = {
    ...{ ...at, client_agreement_id: undefined, account_owner_name: 'Alice Example', currency: 'gbp' },
    account: { type: 'gb', account_number: '87654321', sort_code: '123456' },
  };
  const registered = await call(`${url}/v1/users/${user.body.id}/external_fiat_accounts`, app, account);
  expect(registered).toMatchObject({ status: 200, body: { external_fiat_account: { last_4: '4321' } } });
  const { stdout } = await custos.stop();
  for (const secret of [provider.apiKey, '12345678901', '87654321', 'alice@example.com', 'Weg 12']) {
    expect(stdout).not.toContain(secret);
  }
  expect(provider.faults).toEqual([]);
});
