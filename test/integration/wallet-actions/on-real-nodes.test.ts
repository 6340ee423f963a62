import { createHash } from 'node:crypto';
import { Keypair, PublicKey } from '@solana/web3.js';
import { toHex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TransferActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { startAnvil } from '../../support/anvil.ts';
import { call } from '../../support/call.ts';
import { tokenCode } from '../../support/evm-assembly.ts';
import { fund } from '../../support/fund.ts';
import { startLiteSvmNode } from '../../support/litesvm-node.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

const base = 'eip155:8453';
const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const genesisOfSolana = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
const usdcOnSolana = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const tokenProgram = new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
const associatedProgram = new PublicKey('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');

/** A sandbox on some chains, with controls for tests. */
interface World extends AsyncDisposable {
  readonly sandbox: TestSandbox;
  /** 1 of the native asset and 10 USDC. */
  fund(chain: 'base' | 'solana', address: string): Promise<void>;
  /** Mines blocks and runs the jobs that read them. */
  settle(): Promise<void>;
  /** The balance on the chain, in base units of USDC. */
  usdcOf(chain: 'base' | 'solana', address: string): Promise<bigint>;
}

const worlds: Record<string, () => Promise<World>> = {
  async simulated() {
    const sandbox = await startSandbox();
    return {
      sandbox,
      async fund(chain, address) {
        const [asset, rawAmount] = chain === 'base' ? ['eth', 10n ** 18n] : ['sol', 10n ** 9n];
        await fund(sandbox, address, { chain, asset: asset as string, rawAmount: rawAmount as bigint });
        await fund(sandbox, address, { chain, asset: 'usdc', rawAmount: 10_000_000n });
      },
      settle: () => waitSeconds(sandbox, 10),
      async usdcOf(chain, address) {
        const [caip2, token] = chain === 'base' ? [base, usdcOnBase] : [solana, usdcOnSolana];
        return (await sandbox.chains.find(caip2)!.balances(address, [token]))[0]!;
      },
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
    };
  },
  async real() {
    const anvil = await startAnvil(8453);
    await anvil.ask('anvil_setCode', usdcOnBase, tokenCode);
    const svm = await startLiteSvmNode(genesisOfSolana);
    svm.makeMint(usdcOnSolana, 6);
    const sandbox = await startSandbox({
      rpc: [
        { caip2: base, urls: [anvil.url] },
        { caip2: solana, urls: [svm.url] },
      ],
    });
    return {
      sandbox,
      async fund(chain, address) {
        if (chain === 'base') {
          await anvil.ask('anvil_setBalance', address, toHex(10n ** 18n));
          const slot = `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
          await anvil.ask('anvil_setStorageAt', usdcOnBase, slot, toHex(10_000_000n, { size: 32 }));
          return;
        }
        svm.fund(address, 10n ** 9n);
        svm.fundToken({
          ...{ address: tokenAccount(address), owner: address },
          ...{ mint: usdcOnSolana, amount: 10_000_000n },
        });
      },
      async settle() {
        await anvil.ask('evm_mine');
        await waitSeconds(sandbox, 10);
      },
      async usdcOf(chain, address) {
        if (chain === 'base') {
          const data = `0x70a08231${address.slice(2).toLowerCase().padStart(64, '0')}`;
          return BigInt((await anvil.ask('eth_call', { to: usdcOnBase, data }, 'latest')) as string);
        }
        const account = svm.svm.getAccount(tokenAccount(address) as never);
        // A token account's amount: 8 bytes after mint and owner.
        return account.exists ? Buffer.from(account.data).readBigUInt64LE(64) : 0n;
      },
      async [Symbol.asyncDispose]() {
        await sandbox[Symbol.asyncDispose]();
        await svm[Symbol.asyncDispose]();
        await anvil[Symbol.asyncDispose]();
      },
    };
  },
};

function tokenAccount(owner: string): string {
  const seeds = [new PublicKey(owner), tokenProgram, new PublicKey(usdcOnSolana)].map((key) =>
    key.toBuffer(),
  );
  return PublicKey.findProgramAddressSync(seeds, associatedProgram)[0].toBase58();
}

describe.each(Object.entries(worlds))('transfers on chains that are %s', (_, open) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function makeWallet(chain: 'base' | 'solana'): Promise<Wallet> {
    const chain_type = chain === 'base' ? 'ethereum' : 'solana';
    const { body } = await call(world.sandbox, 'createWallet', { body: { chain_type } });
    await world.fund(chain, body.address);
    return body;
  }

  async function transfer(wallet: Wallet, source: object, address: string): Promise<TransferActionResponse> {
    const body = { source, destination: { address } } as never;
    return (await call(world.sandbox, 'transferFromWallet', { path: { wallet_id: wallet.id }, body })).body;
  }

  async function ended({ id, wallet_id }: TransferActionResponse): Promise<TransferActionResponse> {
    const input = { path: { wallet_id, action_id: id }, query: { include: 'steps' } } as const;
    return (await call(world.sandbox, 'getWalletAction', input)).body as TransferActionResponse;
  }

  let receivers = 0;
  /** An account without funds. */
  function newReceiver(chain: 'base' | 'solana'): string {
    receivers += 1;
    const seed = createHash('sha256').update(`receiver ${receivers}`).digest();
    return chain === 'base' ? toHex(seed.subarray(0, 20)) : Keypair.fromSeed(seed).publicKey.toBase58();
  }

  test.each(['base', 'solana'] as const)(
    'tokens on %s arrive, for no more gas than estimated',
    async (chain) => {
      const wallet = await makeWallet(chain);
      const receiver = newReceiver(chain);
      const begun = await transfer(wallet, { asset: 'usdc', chain, amount: '1.5' }, receiver);
      const next = await transfer(wallet, { asset: 'usdc', chain, amount: '0.000001' }, receiver);
      await world.settle();
      const done = await ended(begun);
      expect(done).toMatchObject({
        status: 'succeeded',
        destination_amount: '1.5',
        steps: [
          {
            type: chain === 'base' ? 'evm_transaction' : 'svm_transaction',
            caip2: chain === 'base' ? base : solana,
            status: 'confirmed',
          },
        ],
      });
      expect((await ended(next)).status).toBe('succeeded');
      expect(BigInt(done.gas!.base_amount)).toBeLessThanOrEqual(BigInt(begun.estimated_gas!.base_amount));
      expect(await world.usdcOf(chain, receiver)).toBe(1_500_001n);
      expect(await world.usdcOf(chain, wallet.address)).toBe(8_499_999n);
      const { body } = await call(world.sandbox, 'getWalletBalance', {
        path: { wallet_id: wallet.id },
        query: { chain, asset: 'usdc' } as never,
      });
      expect(body.balances).toMatchObject([{ raw_value: '8499999', raw_value_decimals: 6 }]);
    },
  );

  test.each([
    ['base', 'eth', '0.25', 18],
    ['solana', 'sol', '0.25', 9],
  ] as const)(
    'the native asset of %s is spent with its gas, to the last unit',
    async (chain, asset, amount, decimals) => {
      const wallet = await makeWallet(chain);
      const receiver = newReceiver(chain);
      const begun = await transfer(wallet, { asset, chain, amount }, receiver);
      await world.settle();
      const done = await ended(begun);
      expect(done.status).toBe('succeeded');
      const { body } = await call(world.sandbox, 'getWalletBalance', {
        path: { wallet_id: wallet.id },
        query: { chain, asset } as never,
      });
      const left = 10n ** BigInt(decimals) - 10n ** BigInt(decimals) / 4n - BigInt(done.gas!.base_amount);
      expect(body.balances).toMatchObject([{ raw_value: left.toString() }]);
    },
  );

  test.each(['base', 'solana'] as const)(
    'an amount above the balance on %s is refused, and nothing is signed',
    async (chain) => {
      const wallet = await makeWallet(chain);
      const receiver = newReceiver(chain);
      await expect(transfer(wallet, { asset: 'usdc', chain, amount: '10.000001' }, receiver)).rejects.toThrow(
        'insufficient_funds',
      );
      const { body } = await call(world.sandbox, 'listWalletActions', { path: { wallet_id: wallet.id } });
      expect(body.data).toEqual([]);
    },
  );
});
