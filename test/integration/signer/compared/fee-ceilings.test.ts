import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ceilingsOf, type EvmCeilings } from '../../../../src/engine/assets/fee-ceilings.ts';
import type { Wallet } from '../../../../src/generated/schemas.ts';
import { databaseKinds } from '../../../support/databases.ts';
import { openOperations, type TestOperations } from '../../../support/run-operations.ts';
import { caip2, type ScriptedChain, scriptChain } from '../../../support/scripted-chain.ts';
import { behindProtocol, type Task } from '../../../support/signer/behind-protocol.ts';
import { newOwner } from '../../../support/signer/owner.ts';

// A node suggests fees, a server fills them in, and its signer has ceilings of its own.

const gwei = 10n ** 9n;
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const hex = (value: bigint): string => `0x${value.toString(16)}`;

/** What the server changes in what it has signed; it is honest by default. */
let tamper: (task: Task) => Task = (task) => task;
afterEach(() => {
  tamper = (task) => task;
});

describe.each(databaseKinds)('on %s, behind the protocol of the signer', (kind) => {
  const owner = newOwner();
  const key = owner.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  let chain: ScriptedChain;
  let server: TestOperations;
  let wallet: Wallet;

  async function open(ofServer: Partial<EvmCeilings>, ofSigner: Partial<EvmCeilings>): Promise<void> {
    const scripted = scriptChain();
    chain = Object.assign(scripted, { ceilings: ceilingsOf(caip2, ofServer) });
    server = await openOperations(kind, {
      chains: chain,
      replaceKeyStore: behindProtocol((task) => tamper(task)),
      feeCeilings: new Map([[caip2, ofSigner]]),
    });
    const body = { chain_type: 'ethereum', owner: { public_key: owner.publicKey } };
    wallet = (await server.run('createWallet', { body })).body as Wallet;
  }

  const sends = (transaction: object = {}) =>
    server.run('walletRpc', {
      path: { wallet_id: wallet.id },
      body: {
        ...{ method: 'eth_sendTransaction', caip2 },
        params: { transaction: { to: receiver, value: '0x1', ...transaction } },
      },
      signWith: [key],
    });

  describe('with the ceilings of the server', () => {
    beforeAll(() => open({}, {}));
    afterAll(() => server[Symbol.asyncDispose]());

    test.each([
      ['the price', { maxFeePerGas: 2_000n * gwei, maxPriorityFeePerGas: gwei }, 21_000n],
      ['the tip', { maxFeePerGas: 600n * gwei, maxPriorityFeePerGas: 500n * gwei }, 21_000n],
      ['the whole fee', { maxFeePerGas: 2_000n * gwei, maxPriorityFeePerGas: gwei }, 416_667n],
      ['the gas', { maxFeePerGas: gwei, maxPriorityFeePerGas: gwei }, 13_981_013n],
      ['the price without tips', { maxFeePerGas: 2_000n * gwei, maxPriorityFeePerGas: undefined }, 21_000n],
    ])('what is at the ceiling of %s is signed and sent', async (_, suggested, units) => {
      chain.suggested = suggested;
      chain.simulation = { succeeds: true, units };
      const sent = chain.broadcasts.length;
      expect(await sends()).toMatchObject({ status: 200 });
      expect(chain.broadcasts).toHaveLength(sent + 1);
    });

    test('a tip that the owner names comes on top of the price', async () => {
      chain.suggested = { maxFeePerGas: 2_000n * gwei, maxPriorityFeePerGas: gwei };
      chain.simulation = { succeeds: true, units: 21_000n };
      const tip = 600n * gwei;
      expect(await sends({ max_priority_fee_per_gas: hex(tip) })).toMatchObject({ status: 200 });
      const { transaction } = chain.broadcasts.at(-1)!;
      expect(transaction.maxFeePerGas).toBe(2_000n * gwei - gwei + tip);
    });

    test('a server that fills in the balance of the wallet gets no signature, and nothing is sent', async () => {
      chain.suggested = { maxFeePerGas: gwei, maxPriorityFeePerGas: gwei };
      chain.simulation = { succeeds: true, units: 21_000n };
      const sent = chain.broadcasts.length;
      tamper = ({ method, params }) => {
        const { transaction } = params as { transaction: object };
        const max = { max_fee_per_gas: hex(chain.balance / 21_000n) };
        return { method, params: { transaction: { ...transaction, ...max } } } as Task;
      };
      expect(await sends()).toMatchObject({
        status: 400,
        body: {
          code: 'transaction_broadcast_failure',
          error: expect.stringContaining(
            'more than its ceiling of 2000000000000; nothing was signed or sent',
          ),
        },
      });
      expect(chain.broadcasts).toHaveLength(sent);
      tamper = (task) => task;
      expect(await sends()).toMatchObject({ status: 200 });
    });
  });

  describe('with lower ceilings than those of the server', () => {
    beforeAll(() => open({}, { maxFeePerGas: gwei - 1n, maxPriorityFeePerGas: 0n }));
    afterAll(() => server[Symbol.asyncDispose]());

    test('an honest request is refused as one above the ceilings of the server, unless it names its fee', async () => {
      chain.suggested = { maxFeePerGas: gwei, maxPriorityFeePerGas: 0n };
      expect(await sends()).toMatchObject({
        status: 400,
        body: {
          code: 'transaction_broadcast_failure',
          error: expect.stringContaining('asked for 1000000000 wei per gas on `eip155:31337`'),
        },
      });
      expect(chain.broadcasts).toEqual([]);
      const fee = { max_fee_per_gas: hex(gwei), max_priority_fee_per_gas: '0x0' };
      expect(await sends(fee)).toMatchObject({ status: 200 });
    });
  });
});
