import { encodeFunctionData, parseAbi } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EvmCeilings } from '../../../src/engine/assets/fee-ceilings.ts';
import { smallSwap } from '../../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  router,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a request that leaves the fee open. The server fills in one that takes the wallet's whole
// balance.

const owner = newOwner();
const friend = `0x${'11'.repeat(20)}`;
const gwei = 10n ** 9n;
const hex = (value: bigint): string => `0x${value.toString(16)}`;

// As documented: per gas, of tip, gas, and in all.
const most = { price: 2_000n * gwei, tip: 500n * gwei, gas: 16_777_216n, fee: 10n ** 18n };

let server: CompromisedServer;
let wallet: SealedWallet;

async function open(configured: ReadonlyMap<string, Partial<EvmCeilings>> = new Map()): Promise<void> {
  server = await compromisedServer(1_900_000_000_000, new Map(), configured);
  wallet = await server.walletOf({ owner: ofKey(owner) });
}
beforeEach(() => open());
afterEach(() => server.close());

async function signs(path: string, body: object, task: object) {
  return server.signs(
    wallet,
    task,
    useOf(wallet, signedBy([owner], { path: `/v1/wallets/wallet${path}`, body })),
  );
}

const plain = { to: friend, value: '0x1', chain_id: 1, nonce: 0 };
const signing = (transaction: object) => ({ method: 'eth_signTransaction', params: { transaction } });
const abi = parseAbi([
  'function execute(address target, uint256 value, bytes data)',
  'function execute(bytes32 mode, bytes executionData)',
]);

/** Calldata of ERC-7821 with one call without calldata, written by hand. */
const batch = (() => {
  const word = (value: bigint) => value.toString(16).padStart(64, '0');
  const item = [BigInt(friend), 1n, 96n, 0n].map(word).join('');
  const data = `0x${word(32n)}${word(1n)}${word(32n)}${item}` as const;
  return encodeFunctionData({ abi, functionName: 'execute', args: [`0x01${'00'.repeat(31)}`, data] });
})();

/** Requests that name nothing of the fee, and the transactions that they ask for. */
const requests: Record<string, () => readonly [path: string, body: object, transaction: object]> = {
  eth_sendTransaction: () => [
    '/rpc',
    {
      method: 'eth_sendTransaction',
      caip2: 'eip155:1',
      params: { transaction: { to: friend, value: '0x1' } },
    },
    plain,
  ],
  wallet_sendCalls: () => [
    '/rpc',
    { method: 'wallet_sendCalls', caip2: 'eip155:1', params: { calls: [{ to: friend, value: '0x1' }] } },
    { to: wallet.address, data: batch, chain_id: 1, nonce: 0 },
  ],
  'a transfer': () => [
    '/transfer',
    {
      source: { asset: 'eth', chain: 'ethereum', amount: '0.000000000000000001' },
      destination: { address: friend },
    },
    plain,
  ],
  'a swap': () => {
    const { body, call } = smallSwap(router, wallet.address);
    return ['/swap', body, { ...plain, ...call }];
  },
};

const dynamic = (price: bigint, tip: bigint, gas: bigint) => ({
  ...{ type: 2, gas_limit: hex(gas) },
  ...{ max_fee_per_gas: hex(price), max_priority_fee_per_gas: hex(tip) },
});
const legacy = (price: bigint, gas: bigint) => ({ type: 0, gas_price: hex(price), gas_limit: hex(gas) });

describe.each(Object.keys(requests))('%s', (name) => {
  const fills = (fee: object) => {
    const [path, body, transaction] = requests[name]!();
    return signs(path, body, signing({ ...transaction, ...fee }));
  };

  test('is signed up to each ceiling', async () => {
    for (const fee of [
      dynamic(most.price, most.tip, 500_000n),
      dynamic(59n * gwei, gwei, most.gas),
      dynamic(10n * gwei, gwei, most.gas),
      dynamic(most.fee / 10n ** 6n, gwei, 10n ** 6n),
      legacy(most.price, 500_000n),
      legacy(most.fee / 10n ** 6n, 10n ** 6n),
    ]) {
      await expect(fills(fee)).resolves.toHaveProperty('signed_transaction');
    }
  });

  test.each([
    ['the price', () => dynamic(most.price + 1n, gwei, 21_000n), 'wei per gas on `eip155:1`'],
    ['the price of a legacy transaction', () => legacy(most.price + 1n, 21_000n), 'wei per gas on'],
    ['the tip', () => dynamic(most.price, most.tip + 1n, 21_000n), 'wei per gas as a tip'],
    ['the gas', () => dynamic(gwei, 0n, most.gas + 1n), 'gas on'],
    ['the whole fee', () => dynamic(most.price, 0n, 500_001n), 'wei as the fee'],
    ['the whole fee of a legacy transaction', () => legacy(most.price, 500_001n), 'wei as the fee'],
  ])('is not signed above that of %s', async (_, fee, unit) => {
    await expect(fills(fee())).rejects.toMatchObject({
      name: 'FeeAboveCeilingError',
      message: expect.stringContaining(unit),
    });
  });
});

describe('the ceilings', () => {
  const sends = (caip2: string, chainId: number | string, fee: object, asked: object = {}) => {
    const transaction = { to: friend, value: '0x1', ...asked };
    const body = { method: 'eth_sendTransaction', caip2, params: { transaction } };
    return signs('/rpc', body, signing({ ...plain, chain_id: chainId, ...asked, ...fee }));
  };

  test('the ceilings are those of the chain', async () => {
    const fee = dynamic(20_000n * gwei, 5_000n * gwei, 21_000n);
    await expect(sends('eip155:137', '0x89', fee)).resolves.toBeDefined();
    await expect(sends('eip155:1', 1, fee)).rejects.toThrow('more than its ceiling of');
    await expect(sends('eip155:324', 324, dynamic(1n, 0n, 2n ** 27n))).resolves.toBeDefined();
    await expect(sends('eip155:324', 324, dynamic(1n, 0n, 2n ** 27n + 1n))).rejects.toThrow('gas on');
  });

  test('the ceilings are replaced one by one by those of the signer’s own settings', async () => {
    server.close();
    await open(new Map([['eip155:1', { maxFeePerGas: 3_000n * gwei, fee: 10n ** 15n }]]));
    await expect(sends('eip155:1', 1, dynamic(3_000n * gwei, 0n, 300n))).resolves.toBeDefined();
    await expect(sends('eip155:1', 1, dynamic(3_000n * gwei + 1n, 0n, 300n))).rejects.toThrow('per gas');
    await expect(sends('eip155:1', 1, dynamic(10n ** 10n, 0n, 100_001n))).rejects.toThrow('as the fee');
    await expect(sends('eip155:1', 1, dynamic(1n, 0n, most.gas + 1n))).rejects.toThrow('gas on');
    await expect(sends('eip155:10', 10, dynamic(3_000n * gwei, 0n, 300n))).rejects.toThrow('per gas');
  });

  test('the ceilings do not come with the request of the server', async () => {
    const transaction = { ...plain, ...dynamic(most.price + 1n, 0n, 21_000n) };
    const asked = { to: friend, value: '0x1' };
    const body = { method: 'eth_sendTransaction', caip2: 'eip155:1', params: { transaction: asked } };
    const use = useOf(wallet, signedBy([owner], { path: '/v1/wallets/wallet/rpc', body }));
    const feeCeilings = { 'eip155:1': { maxFeePerGas: 10n ** 6n } };
    const forged = { feeCeilings: JSON.parse(JSON.stringify(feeCeilings, (_, value) => String(value))) };
    await expect(server.signs(wallet, signing(transaction), { ...use, ...forged }, forged)).rejects.toThrow(
      'per gas',
    );
  });

  test('the ceilings do not limit what the owner has named, but what is left open beside it', async () => {
    const huge = { price: 10_000n * gwei, gas: 40_000_000n };
    const gas = { gas_limit: hex(huge.gas) };
    const price = { max_fee_per_gas: hex(huge.price) };
    const tip = { max_priority_fee_per_gas: hex(600n * gwei) };
    const type = { type: 2 };
    const eth = (fee: object, asked: object) => sends('eip155:1', 1, { ...type, ...fee }, asked);
    await expect(eth({}, { ...gas, ...price, ...tip })).resolves.toBeDefined();
    await expect(
      eth({ max_priority_fee_per_gas: hex(most.tip) }, { ...gas, ...price }),
    ).resolves.toBeDefined();
    const aboveTip = { max_priority_fee_per_gas: hex(most.tip + 1n) };
    await expect(eth(aboveTip, { ...gas, ...price })).rejects.toThrow('as a tip');
    // One of the two alone leaves the whole fee to the server.
    await expect(eth({ max_fee_per_gas: hex(25n * gwei) }, gas)).resolves.toBeDefined();
    await expect(eth({ max_fee_per_gas: hex(25n * gwei + 1n) }, gas)).rejects.toThrow('as the fee');
    await expect(eth({ gas_limit: hex(100_000n) }, price)).resolves.toBeDefined();
    await expect(eth({ gas_limit: hex(100_001n) }, price)).rejects.toThrow('as the fee');
    // A tip that the owner has named comes on top of the price.
    const tipped = (value: bigint) => ({ ...gasOf(100_000n), max_fee_per_gas: hex(value) });
    await expect(eth(tipped(most.price + 600n * gwei), tip)).resolves.toBeDefined();
    await expect(eth(tipped(most.price + 600n * gwei + 1n), tip)).rejects.toThrow('wei per gas on');
    const named = { gas_price: hex(huge.price), gas_limit: hex(huge.gas) };
    await expect(sends('eip155:1', 1, { type: 0 }, named)).resolves.toBeDefined();
    const named2 = { gas_price: hex(huge.price) };
    await expect(sends('eip155:1', 1, { type: 0, ...gasOf(100_001n) }, named2)).rejects.toThrow('as the fee');
  });

  test('the ceilings do not limit a transaction that the owner has sent to be signed as it is', async () => {
    const transaction = { ...plain, ...dynamic(10n ** 15n, 10n ** 14n, 10n ** 9n) };
    const body = signing(transaction);
    await expect(signs('/rpc', body, body)).resolves.toHaveProperty('signed_transaction');
    // The body of another operation has no such words.
    const swap = smallSwap(router, wallet.address);
    const swapping = signing({ ...transaction, ...swap.call });
    for (const method of ['eth_signTransaction', 'eth_sendTransaction']) {
      const asked = { ...swap.body, method, params: swapping.params };
      await expect(signs('/swap', asked, swapping)).rejects.toThrow('something else');
    }
  });

  test('the ceilings hold for automations, without a request', async () => {
    const authority = { ...wallet.authority, isAutomated: true };
    const { parts, json } = await server.call('createWalletKey', [], { binding: wallet.binding, authority });
    const { address } = (json as { facts: { address: string } }).facts;
    wallet = { ...wallet, parts, authority, address };
    const use = useOf(wallet);
    const task = (price: bigint) => signing({ ...plain, ...dynamic(price, 0n, 21_000n) });
    await expect(server.signs(wallet, task(most.price), use)).resolves.toBeDefined();
    await expect(server.signs(wallet, task(most.price + 1n), use)).rejects.toThrow('wei per gas');
  });
});

describe('a sponsored operation', () => {
  const gasFields = ['call_gas_limit', 'verification_gas_limit', 'pre_verification_gas'] as const;
  const paymasterFields = ['paymaster_verification_gas_limit', 'paymaster_post_op_gas_limit'] as const;
  const operates = (fees: object) => {
    const args = [friend as `0x${string}`, 1n, '0x'] as const;
    const body = {
      ...{ method: 'eth_sendTransaction', caip2: 'eip155:1', sponsor: true },
      params: { transaction: { to: friend, value: '0x1' } },
    };
    const operation = {
      ...{ sender: wallet.address, nonce: '0x1' },
      call_data: encodeFunctionData({ abi, functionName: 'execute', args }),
      ...{ call_gas_limit: '0x1', verification_gas_limit: '0x1', pre_verification_gas: '0x1' },
      ...{ max_fee_per_gas: '0x1', max_priority_fee_per_gas: '0x1', ...fees },
    };
    const contract = '0x4337084d9e255ff0702461cf8895ce9e3b5ff108';
    const params = { contract, chain_id: 1, user_operation: operation };
    return signs('/rpc', body, { method: 'eth_signUserOperation', params });
  };
  const sponsored = { paymaster: friend, paymaster_data: '0x' };

  test.each(gasFields)('whose account pays for too much %s is not signed', async (field) => {
    await expect(operates({ [field]: hex(most.gas - 2n) })).resolves.toHaveProperty('signature');
    await expect(operates({ [field]: hex(most.gas - 1n) })).rejects.toThrow('gas on `eip155:1`');
  });

  test.each(paymasterFields)('a sponsored operation counts %s', async (field) => {
    await expect(operates({ ...sponsored, [field]: hex(most.gas - 3n) })).resolves.toBeDefined();
    await expect(operates({ ...sponsored, [field]: hex(most.gas - 2n) })).rejects.toThrow('gas on');
  });

  test('a sponsored operation has the ceilings of the price and of the whole fee', async () => {
    const price = (value: bigint) => ({ max_fee_per_gas: hex(value), max_priority_fee_per_gas: '0x0' });
    await expect(operates(price(most.price))).resolves.toBeDefined();
    await expect(operates(price(most.price + 1n))).rejects.toThrow('wei per gas');
    const whole = { ...price(most.price), call_gas_limit: hex(499_998n) };
    await expect(operates(whole)).resolves.toBeDefined();
    await expect(operates({ ...whole, call_gas_limit: hex(499_999n) })).rejects.toThrow('as the fee');
  });
});

function gasOf(gas: bigint) {
  return { gas_limit: hex(gas) };
}
