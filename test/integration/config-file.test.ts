import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config.ts';
import { CONFIG_FILE } from '../../src/config/config-file.ts';
import { startSandbox } from '../../src/testing/testing.ts';
import { runCommand, runCustos, serveCustos, temporaryFolder, waitFor } from '../support/run-custos.ts';

const policy = {
  version: '1.0',
  chain_type: 'ethereum',
  rules: [
    {
      name: 'at most 1 ether',
      method: 'eth_sendTransaction',
      action: 'ALLOW',
      conditions: [
        {
          field_source: 'ethereum_transaction',
          field: 'value',
          operator: 'lte',
          value: '1000000000000000000',
        },
      ],
    },
  ],
};

const shop = {
  $schema: './node_modules/custos/openapi/config.schema.json',
  prefix: 'acme',
  seed: 'shop',
  users: { dana: { linked_accounts: [{ type: 'email', address: 'dana@example.com' }] } },
  // The wallet comes before the policy and the quorum that it refers to.
  wallets: {
    till: { chain_type: 'ethereum', policy_ids: ['$policies.small'], owner_id: '$keyQuorums.team' },
    dana: { chain_type: 'solana', owner: { user_id: '$users.dana' } },
  },
  keyQuorums: {
    team: { public_keys: ['$keys.alice'], user_ids: ['$users.dana'], authorization_threshold: 1 },
  },
  policies: { small: policy },
  balances: [{ address: '$wallets.till', chain: 'base', asset: 'usdc', amount: '250' }],
  webhookEndpoints: { orders: { url: 'http://127.0.0.1:9/hook' } },
  faults: [{ effect: 'error', code: 'unavailable', operation: 'walletRpc', wallet_id: '$wallets.till' }],
};

let folder: string;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  path = join(folder, CONFIG_FILE);
});

// Other tests of this process read files by paths from here.
const before = process.cwd();
afterEach(() => process.chdir(before));

const write = (content: object, to = path): void => writeFileSync(to, JSON.stringify(content));

test('the testing library finds the file in the current folder and has what it declares, also after a reset', async () => {
  write(shop);
  process.chdir(folder);
  await using sandbox = await startSandbox();
  const dana = await sandbox.call('getUserByCustomAuthID', { body: { custom_user_id: 'dana' } });
  expect(dana.id).toMatch(/^did:acme:/);
  const seen = async () => {
    const wallet = await sandbox.call('getWallet', { path: { wallet_id: 'ext_wal_till' } });
    const [small] = (await sandbox.call('listPolicies', {})).data.filter(({ name }) => name === 'small');
    const team = await sandbox.call('getKeyQuorum', { path: { key_quorum_id: wallet.owner_id! } });
    const balance = await sandbox.call('getWalletBalance', {
      ...{ path: { wallet_id: 'ext_wal_till' }, query: { chain: 'base', asset: 'usdc' } },
    });
    return {
      ...{ policies: wallet.policy_ids, small: small?.id, members: team.user_ids, name: team.display_name },
      usdc: balance.balances.map(({ raw_value }) => raw_value),
      endpoints: (await sandbox.call('listWebhookEndpoints', {})).data.map(({ description }) => description),
      faults: (await sandbox.faults.list()).map(({ effect, code }) => [effect, code]),
    };
  };
  const first = await seen();
  expect(first).toEqual({
    ...{ policies: [first.small], small: expect.any(String), members: [dana.id], name: 'team' },
    ...{ usdc: ['250000000'], endpoints: ['orders'], faults: [['error', 'unavailable']] },
  });
  await sandbox.call('createWallet', { body: { chain_type: 'ethereum', external_id: 'later' } });
  await sandbox.faults.clear();
  await sandbox.reset();
  expect(await seen()).toEqual(first);
  expect((await sandbox.attempt('getWallet', { path: { wallet_id: 'ext_wal_later' } })).status).toBe(404);
  const alone = await startSandbox({ config: false });
  expect((await alone.attempt('getWallet', { path: { wallet_id: 'ext_wal_till' } })).status).toBe(404);
  await alone.close();
});

test('every fault names the file, the path and what was expected', async () => {
  const started = async (content: object): Promise<readonly string[]> => {
    write(content);
    try {
      await (await startSandbox({ config: path })).close();
    } catch (error) {
      if (error instanceof ConfigError) return error.faults;
      throw error;
    }
    return [];
  };
  expect(await started({ Port: 1, seedData: 1, users: [], wallets: { 'a b': {} }, faults: {} })).toEqual([
    'custos.config.json: /Port: expected `port`, got `Port`',
    'custos.config.json: /seedData: expected true or false, got `1`',
    'custos.config.json: /users: expected an object whose members are the names, got a list',
    'custos.config.json: /wallets/a b: expected a name of at most 50 letters, digits, `-` and `_`',
    'custos.config.json: /faults: expected a list, got an object',
  ]);
  expect(await started({ prefix: 'A1', clock: 'later' })).toEqual([
    expect.stringMatching(/^custos\.config\.json: \/prefix: expected a lower-case word .*, got `A1`$/),
    expect.stringMatching(
      /^custos\.config\.json: \/clock: expected `now`, `frozen` or a time .*, got `later`$/,
    ),
  ]);
  expect(
    await started({
      wallets: {
        a: { chain_type: 'ethereum', policy_ids: ['$policies.none'] },
        b: { chain_type: 'ethereum', color: 'red' },
        c: { chain_type: 'solana', owner_id: '$keyQuorums.q' },
      },
      keyQuorums: { q: { public_keys: ['$keys.dora'] }, r: { key_quorum_ids: ['$keyQuorums.r'] } },
      faults: [{ effect: 'error' }, { effect: 'latency', blocks: 2 }],
      balances: [{ address: '$wallets.b', chain: 'moon', amount: '1' }],
    }),
  ).toEqual([
    'custos.config.json: /keyQuorums/q/public_keys/0: expected $keys.alice, $keys.bob or $keys.carol, got `$keys.dora`',
    'custos.config.json: /keyQuorums/r: expected no reference that leads back to itself',
    'custos.config.json: /wallets/a/policy_ids/0: expected a member of `policies`, got `$policies.none`',
    'custos.config.json: /wallets/b/color: unknown property',
    'custos.config.json: /faults/0/code: expected an error code for `error`',
    expect.stringMatching(/^custos\.config\.json: \/faults\/1\/blocks: expected no `blocks` for `latency`/),
  ]);
  const outside = `${folder}-private.json`;
  writeFileSync(outside, '{}');
  symlinkSync(outside, join(folder, 'link.json'));
  writeFileSync(join(folder, 'large.json'), '');
  truncateSync(join(folder, 'large.json'), 100 * 2 ** 20);
  const files = [outside, `../${basename(outside)}`, 'link.json', 'large.json', '/dev/zero', 'none.json'];
  expect(await started({ constructor: true, faults: files.map(($file) => ({ body: { $file } })) })).toEqual([
    expect.stringMatching(/^custos\.config\.json: \/constructor: expected one of host, port, /),
    ...['below', 'below', 'below', 'of at most 16 MiB', 'below', 'that can be read'].map((what, index) =>
      expect.stringMatching(
        `^custos\\.config\\.json: /faults/${index}/body/\\$file: expected a file ${what}.*, got \`${files[index]}\`$`,
      ),
    ),
  ]);
  rmSync(outside);
  writeFileSync(path, '{ "port": ');
  await expect(startSandbox({ config: path })).rejects.toThrow(
    /custos\.config\.json: expected JSON: .*end of JSON/,
  );
});

test('a running sandbox applies a changed file, and says what needs a reset or a restart', async () => {
  write({ ...shop, prefix: 'service', port: 0 });
  const custos = await serveCustos(['sandbox', '--config', path, '--json']);
  const reloads = () =>
    custos
      .output()
      .stdout.split('\n')
      .filter((line) => line.startsWith('{"msg":"config"'))
      .map((line) => JSON.parse(line) as object);
  const { team: _, ...quorums } = shop.keyQuorums;
  write({
    ...{ ...shop, port: 0, prefix: 'other', keyQuorums: quorums, faults: [] },
    policies: { small: { ...policy, rules: [] } },
    users: { dana: shop.users.dana, erin: {} },
    wallets: { dana: shop.wallets.dana, till: { ...shop.wallets.till, owner_id: null } },
  });
  await waitFor(() => reloads().length === 1);
  expect(reloads()[0]).toMatchObject({
    applied: ['/users/erin: created', '/policies/small: changed'],
    needs_reset: ['/wallets/till: changed', '/keyQuorums/team: removed'],
    needs_restart: ['/prefix: service -> other'],
    faults: [],
  });
  const { data } = (await custos.call<{ data: { id: string }[] }>('GET', '/v1/policies')).body;
  const small = await custos.call<{ rules: unknown[] }>('GET', `/v1/policies/${data[0]!.id}`);
  expect(small.body.rules).toEqual([]);
  expect((await runCommand(['faults', 'list', '--ready-file', custos.readyFile])).stdout.trim()).toBe('');
  expect((await runCommand(['reset', '--ready-file', custos.readyFile])).code).toBe(0);
  const till = await custos.call<{ owner_id: string | null }>('GET', '/v1/wallets/ext_wal_till');
  expect(till.body.owner_id).toBe(null);
  writeFileSync(path, '{');
  await waitFor(() => reloads().length === 2);
  expect(reloads()[1]).toMatchObject({ applied: [], faults: [expect.stringContaining('expected JSON')] });
  await custos.stop('SIGINT');
});

test('a data folder keeps the resources of the file once, and options come before the file', async () => {
  write({ seed: 'a', clock: 'frozen', wallets: { till: { chain_type: 'ethereum' } } });
  const args = ['sandbox', '--config', path, '--data', join(folder, 'data'), '--clock', 'now'];
  const ids: string[] = [];
  for (let start = 0; start < 2; start += 1) {
    const custos = await serveCustos(args);
    const { body } = await custos.call<{ data: { id: string }[] }>('GET', '/v1/wallets');
    ids.push(...body.data.map(({ id }) => id));
    const clock = await runCommand(['clock', 'show', '--json', '--ready-file', custos.readyFile]);
    expect(JSON.parse(clock.stdout)).toMatchObject({ frozen: false });
    await custos.stop('SIGINT');
  }
  expect(new Set(ids).size).toBe(1);
  expect(ids).toHaveLength(2);
});

test('`custos exec` takes the file of its folder, without the port of the sandbox there', async () => {
  write({ ...shop, port: 1 });
  const run = ['exec', '--config', path, '--', 'node', '-e', 'console.log(process.env.CUSTOS_BASE_URL)'];
  const { stdout, code } = await runCustos(run);
  expect({ stdout, code }).toEqual({
    stdout: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d{4,5}\n$/),
    code: 0,
  });
});

test('the schema for editors accepts the file, and refuses what the sandbox refuses', () => {
  const schema = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../openapi/config.schema.json'), 'utf8'),
  );
  const validate = new Ajv({ strict: false }).compile(schema);
  expect(validate(shop), JSON.stringify(validate.errors)).toBe(true);
  const refused: Record<string, object> = {
    'an unknown setting': { Port: 1 },
    'a flag that is a number': { seedData: 1 },
    'a wallet without its chain': { wallets: { a: {} } },
    'an unknown member': { wallets: { a: { chain_type: 'solana', color: 'red' } } },
    'an unknown effect': { faults: [{ effect: 'explode' }] },
    'a balance without an address': { balances: [{ chain: 'base', amount: '1' }] },
  };
  for (const [what, content] of Object.entries(refused)) expect(validate(content), what).toBe(false);
});
