import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import type { Services } from '../../../src/ports/operation-context.ts';
import type { SandboxDivergences } from '../../../src/sandbox/generated/schemas.ts';
import { call, control } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
const asked = new Set<string>();

beforeAll(async () => {
  sandbox = await startSandbox();
  const { body: wallet } = await call(sandbox, 'getWallet', { path });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const services = sandbox.services as { -readonly [Name in keyof Services]: Services[Name] };
  for (const name of simulated) Object.assign(services, { [name]: noting(name, services[name] as object) });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** What a sandbox has from its simulated world, see `Services`. */
const simulated = [
  ...(['chains', 'prices', 'custodians', 'exchange', 'incentives'] as const),
  ...(['vaultRates', 'swapRoutes', 'fiatProviders', 'cardIssuers'] as const),
] satisfies (keyof Services)[];

/** The port, which notes when one of its methods is called. */
function noting<Port extends object>(name: string, port: Port): Port {
  return new Proxy(port, {
    get(target, method, receiver) {
      const found: unknown = Reflect.get(target, method, receiver);
      if (typeof found !== 'function') return found;
      return (...given: unknown[]) => {
        if (!isJob()) asked.add(name);
        return found.apply(target, given);
      };
    },
  });
}

/** Whether background work calls, which belongs to no operation. */
function isJob(): boolean {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  const { stack = '' } = new Error('who calls');
  Error.stackTraceLimit = stackTraceLimit;
  return stack.includes('/src/jobs/');
}

async function listed(operation: OperationId): Promise<string[]> {
  const { body } = await control(sandbox, 'GET', `/_sandbox/divergences?operation=${operation}`);
  const { data } = body as unknown as SandboxDivergences;
  return data.flatMap(({ simulated: parts }) => parts.map(({ name }) => name));
}

const path = { wallet_id: 'ext_wal_acme-ethereum' };
const to = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const base = 'eip155:8453';

/** Which parts each request asks, as its description in the contract lets expect. */
const requests: readonly [OperationId, object, readonly string[]][] = [
  ['getWallet', { path }, []],
  ['createWallet', { body: { chain_type: 'ethereum' } }, []],
  [
    'walletRpc',
    { path, body: { method: 'personal_sign', params: { message: 'Hi', encoding: 'utf-8' } } },
    [],
  ],
  [
    'createCustodialWallet',
    { body: { provider: 'bridge', provider_user_id: 'cust_1', chain: 'base' } },
    ['custodians'],
  ],
  ['getWalletBalance', { path, query: { asset: 'eth', chain: 'base' } }, ['chains']],
  [
    'getWalletBalance',
    { path, query: { asset: 'eth', chain: 'base', include_currency: 'usd' } },
    ['chains', 'prices'],
  ],
  ['getEthereumEarnVault', { path: { vault_id: 'qrvc27mg0z2zii6xo0k3z34h' } }, ['chains', 'vaultRates']],
  [
    'walletRpc',
    {
      path,
      body: { method: 'eth_sendTransaction', caip2: base, params: { transaction: { to, value: '0x0' } } },
    },
    ['chains'],
  ],
];

test.each(requests)(
  '%s of %o asks %o, and the list of divergences says so',
  async (operation, request, parts) => {
    await sandbox.settle();
    asked.clear();
    await call(sandbox, operation, request as never);
    expect([...asked].sort()).toEqual(expect.arrayContaining([...parts]));
    expect(await listed(operation)).toEqual(expect.arrayContaining([...asked]));
  },
);

test('what asks nothing simulated is not listed as if it did', async () => {
  expect(await listed('getWallet')).toEqual([]);
  expect(await listed('createWallet')).toEqual([]);
  expect(await listed('createPolicy')).toEqual([]);
});

test('parts have what replaces them; an operation without an entry does not exist', async () => {
  const { body } = await control(sandbox, 'GET', '/_sandbox/divergences');
  const { data } = body as unknown as SandboxDivergences;
  expect(data.map(({ operation }) => operation).sort()).toEqual(Object.keys(operations).sort());
  const chains = data
    .find(({ operation }) => operation === 'transferFromWallet')
    ?.simulated.find(({ name }) => name === 'chains');
  expect(chains?.setting).toMatch(/--rpc/);
  const unknown = await control(sandbox, 'GET', '/_sandbox/divergences?operation=getNothing');
  expect(unknown.status).toBe(404);
});
