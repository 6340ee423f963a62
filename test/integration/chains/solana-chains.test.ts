import { createHash } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';
import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import type { SolanaChain } from '../../../src/ports/chains.ts';
import { openSimulatedChains } from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { genesisHash, startLiteSvmNode } from '../../support/litesvm-node.ts';

const SOL = 1_000_000_000n;
const RENT_OF_TOKEN_ACCOUNT = 2_039_280n;
const RENT_OF_NOTHING = 890_880n;
const caip2 = `solana:${genesisHash.slice(0, 32)}`;
const tokenProgram = new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
const associatedProgram = new PublicKey('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');
const mint = keypair('mint').publicKey;

/** A chain with controls for tests. */
interface World extends AsyncDisposable {
  readonly chain: SolanaChain;
  fund(owner: PublicKey, lamports: bigint): unknown;
  fundToken(owner: PublicKey, amount: bigint): unknown;
  settle(): unknown;
  /** Advances the clock until current blockhashes are no longer valid. */
  expire(): unknown;
}

const worlds: Record<string, () => Promise<World>> = {
  async simulated() {
    const clock = adjustableClock({ startMs: Date.UTC(2026, 0, 1), frozen: true });
    const chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: undefined });
    return {
      chain: chains.find(caip2) as SolanaChain,
      fund: (owner, rawAmount) =>
        chains.fund(caip2, { address: owner.toBase58(), tokenAddress: null, rawAmount }),
      fundToken: (owner, rawAmount) =>
        chains.fund(caip2, {
          address: owner.toBase58(),
          tokenAddress: mint.toBase58(),
          rawAmount,
          decimals: 6,
        }),
      settle: () => chains.mine(caip2, 1),
      expire: () => chains.mine(caip2, 151),
      [Symbol.asyncDispose]: () => chains.close(),
    };
  },
  async litesvm() {
    const node = await startLiteSvmNode();
    node.makeMint(mint.toBase58(), 6);
    const chains = connectChains([{ caip2, urls: [node.url] }], silentLog);
    return {
      chain: chains.find(caip2) as SolanaChain,
      fund: (owner, lamports) => node.fund(owner.toBase58(), lamports),
      fundToken: (owner, amount) =>
        node.fundToken({
          ...{ address: associated(owner).toBase58(), owner: owner.toBase58() },
          ...{ mint: mint.toBase58(), amount },
        }),
      settle: () => undefined,
      expire: () => node.svm.expireBlockhash(),
      [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
    };
  },
};

function keypair(name: string): Keypair {
  return Keypair.fromSeed(createHash('sha256').update(name).digest());
}

let accounts = 0;
function newKeypair(): Keypair {
  accounts += 1;
  return keypair(`account ${accounts}`);
}

function associated(owner: PublicKey): PublicKey {
  const seeds = [owner, tokenProgram, mint].map((key) => key.toBuffer());
  return PublicKey.findProgramAddressSync(seeds, associatedProgram)[0];
}

function transfer(from: Keypair, to: PublicKey, lamports: bigint): TransactionInstruction {
  return SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: to, lamports });
}

const writable = (pubkey: PublicKey, isSigner = false) => ({ pubkey, isSigner, isWritable: true });
const readonly = (pubkey: PublicKey, isSigner = false) => ({ pubkey, isSigner, isWritable: false });

function createAssociated(payer: PublicKey, owner: PublicKey, isIdempotent = false): TransactionInstruction {
  return new TransactionInstruction({
    programId: associatedProgram,
    keys: [
      ...[writable(payer, true), writable(associated(owner)), readonly(owner), readonly(mint)],
      ...[readonly(SystemProgram.programId), readonly(tokenProgram)],
    ],
    data: isIdempotent ? Buffer.of(1) : Buffer.alloc(0),
  });
}

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

function transferToken(
  authority: PublicKey,
  from: PublicKey,
  to: PublicKey,
  amount: bigint,
): TransactionInstruction {
  return new TransactionInstruction({
    programId: tokenProgram,
    keys: [writable(associated(from)), writable(associated(to)), readonly(authority, true)],
    data: Buffer.concat([Buffer.of(3), u64(amount)]),
  });
}

function transferChecked(
  { from, to, decimals = 6 }: { from: PublicKey; to: PublicKey; decimals?: number },
  amount: bigint,
): TransactionInstruction {
  return new TransactionInstruction({
    programId: tokenProgram,
    keys: [writable(associated(from)), readonly(mint), writable(associated(to)), readonly(from, true)],
    data: Buffer.concat([Buffer.of(12), u64(amount), Buffer.of(decimals)]),
  });
}

function approve(owner: PublicKey, delegate: PublicKey, amount: bigint): TransactionInstruction {
  return new TransactionInstruction({
    programId: tokenProgram,
    keys: [writable(associated(owner)), readonly(delegate), readonly(owner, true)],
    data: Buffer.concat([Buffer.of(4), u64(amount)]),
  });
}

function close(owner: PublicKey): TransactionInstruction {
  return new TransactionInstruction({
    programId: tokenProgram,
    keys: [writable(associated(owner)), writable(owner), readonly(owner, true)],
    data: Buffer.of(9),
  });
}

describe.each(Object.entries(worlds))('a Solana chain, %s', (_, open) => {
  let world: World;
  let chain: SolanaChain;

  beforeAll(async () => {
    world = await open();
    chain = world.chain;
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function funded(lamports = SOL): Promise<Keypair> {
    const key = newKeypair();
    await world.fund(key.publicKey, lamports);
    return key;
  }

  /** A legacy transaction by web3.js, signed by all. */
  async function sign(
    signers: readonly Keypair[],
    ...instructions: TransactionInstruction[]
  ): Promise<Uint8Array> {
    const { blockhash } = await chain.latestBlockhash();
    const transaction = new Transaction({ feePayer: signers[0]!.publicKey, recentBlockhash: blockhash });
    transaction.add(...instructions).sign(...signers);
    return new Uint8Array(transaction.serialize());
  }

  async function settled(signedBytes: Uint8Array) {
    const outcome = await chain.broadcast(signedBytes);
    if (!outcome.isAccepted) throw new Error(outcome.message);
    await world.settle();
    return chain.statusOf(outcome.hash, signedBytes);
  }

  const lamportsOf = async (key: PublicKey) => (await chain.balances(key.toBase58(), [null]))[0];
  const tokensOf = async (key: PublicKey) => (await chain.balances(key.toBase58(), [mint.toBase58()]))[0];

  test('a transfer is identified by its first signature, costs 5000 lamports and moves the amount', async () => {
    const [alice, bob] = [await funded(), newKeypair().publicKey];
    const signed = await sign([alice], transfer(alice, bob, 2_000_000n));
    expect(await chain.simulate(signed)).toMatchObject({ succeeds: true });
    expect(await chain.broadcast(signed)).toEqual({ isAccepted: true, hash: hashOf(signed) });
    await world.settle();
    const status = await settled(signed);
    expect(status).toMatchObject({ kind: 'included', feePaid: 5_000n });
    expect(await lamportsOf(bob)).toBe(2_000_000n);
    expect(await lamportsOf(alice.publicKey)).toBe(SOL - 2_000_000n - 5_000n);
  });

  test('a version 0 transaction with a compute budget is accepted', async () => {
    const [alice, bob] = [await funded(), newKeypair().publicKey];
    const { blockhash } = await chain.latestBlockhash();
    const message = new TransactionMessage({
      payerKey: alice.publicKey,
      recentBlockhash: blockhash,
      instructions: [
        ComputeBudgetProgram.setComputeUnitLimit({ units: 10_000 }),
        transfer(alice, bob, 1_000_000n),
      ],
    }).compileToV0Message();
    const transaction = new VersionedTransaction(message);
    transaction.sign([alice]);
    expect((await settled(transaction.serialize())).kind).toBe('included');
    expect(await lamportsOf(bob)).toBe(1_000_000n);
  });

  test('every signer pays for a signature', async () => {
    const [alice, bob] = [await funded(), await funded()];
    const carol = newKeypair().publicKey;
    const signed = await sign([alice, bob], transfer(bob, carol, 1_000_000n));
    expect(await settled(signed)).toMatchObject({ kind: 'included', feePaid: 10_000n });
    expect(await lamportsOf(bob.publicKey)).toBe(SOL - 1_000_000n);
    expect(await lamportsOf(alice.publicKey)).toBe(SOL - 10_000n);
  });

  test('an amount above the balance is refused without a fee', async () => {
    const alice = await funded();
    const signed = await sign([alice], transfer(alice, newKeypair().publicKey, 2n * SOL));
    const refusal = { reason: 'insufficient_funds' };
    expect(await chain.simulate(signed)).toMatchObject({ succeeds: false, ...refusal });
    expect(await chain.broadcast(signed)).toMatchObject({ isAccepted: false, ...refusal });
    expect(await lamportsOf(alice.publicKey)).toBe(SOL);
  });

  test('an empty account cannot pay a fee', async () => {
    const alice = newKeypair();
    const signed = await sign([alice], transfer(alice, newKeypair().publicKey, 1n));
    expect(await chain.broadcast(signed)).toMatchObject({ isAccepted: false, reason: 'insufficient_funds' });
  });

  test('an account must end empty or with its rent exemption', async () => {
    const [alice, bob] = [await funded(), newKeypair().publicKey];
    const dust = await sign([alice], transfer(alice, bob, RENT_OF_NOTHING - 1n));
    expect(await chain.broadcast(dust)).toMatchObject({ isAccepted: false, reason: 'reverts' });
    const leavesDust = await sign([alice], transfer(alice, bob, SOL - 5_000n - RENT_OF_NOTHING + 1n));
    expect(await chain.broadcast(leavesDust)).toMatchObject({ isAccepted: false, reason: 'reverts' });
    const all = await sign([alice], transfer(alice, bob, SOL - 5_000n));
    expect((await settled(all)).kind).toBe('included');
    expect(await lamportsOf(alice.publicKey)).toBe(0n);
  });

  test('bytes with a wrong signature, and bytes that are not a transaction, are refused', async () => {
    const alice = await funded();
    const signed = await sign([alice], transfer(alice, newKeypair().publicKey, 1_000_000n));
    const forged = Uint8Array.from(signed);
    forged[5]! ^= 1;
    expect(await chain.broadcast(forged)).toMatchObject({ isAccepted: false, reason: 'invalid' });
  });

  test('a blockhash expires', async () => {
    const alice = await funded();
    const signed = await sign([alice], transfer(alice, newKeypair().publicKey, 1_000_000n));
    const hash = hashOf(signed);
    expect(await chain.statusOf(hash, signed)).toMatchObject({ kind: 'unknown', isExpired: false });
    await world.expire();
    expect(await chain.broadcast(signed)).toMatchObject({ isAccepted: false, reason: 'stale' });
    expect(await chain.simulate(signed)).toMatchObject({ succeeds: false, reason: 'stale' });
    // Nodes can be wrong about it, simulated chains cannot.
    const gone = [
      { kind: 'unknown', isExpired: true },
      expect.objectContaining({ kind: 'gone', as: 'expired' }),
    ];
    expect(gone).toContainEqual(await chain.statusOf(hash, signed));
  });

  test('the same bytes can be broadcast again', async () => {
    const alice = await funded();
    const signed = await sign([alice], transfer(alice, newKeypair().publicKey, 1_000_000n));
    expect((await settled(signed)).kind).toBe('included');
    expect((await settled(signed)).kind).toBe('included');
    expect(await lamportsOf(alice.publicKey)).toBe(SOL - 1_000_000n - 5_000n);
  });

  describe('tokens', () => {
    test('tokens have a mint with their decimals', async () => {
      await world.fundToken(newKeypair().publicKey, 1n);
      expect(await chain.mint(mint.toBase58())).toEqual({
        decimals: 6,
        tokenProgram: tokenProgram.toBase58(),
      });
      expect(await chain.mint(newKeypair().publicKey.toBase58())).toBeUndefined();
      expect(await chain.rentExemption(165)).toBe(RENT_OF_TOKEN_ACCOUNT);
    });

    test('go to an account that is created in the same transaction', async () => {
      const [alice, bob] = [await funded(), newKeypair().publicKey];
      await world.fundToken(alice.publicKey, 500n);
      expect(await chain.tokenAccounts(bob.toBase58(), mint.toBase58())).toEqual([]);
      const signed = await sign(
        [alice],
        createAssociated(alice.publicKey, bob),
        transferChecked({ from: alice.publicKey, to: bob }, 200n),
      );
      expect(await settled(signed)).toMatchObject({ kind: 'included', feePaid: 5_000n });
      expect(await chain.tokenAccounts(bob.toBase58(), mint.toBase58())).toEqual([
        { address: associated(bob).toBase58(), rawAmount: 200n },
      ]);
      expect(await tokensOf(alice.publicKey)).toBe(300n);
      expect(await lamportsOf(alice.publicKey)).toBe(SOL - 5_000n - RENT_OF_TOKEN_ACCOUNT);
      // Creating it again fails, except with CreateIdempotent.
      const again = await sign([alice], createAssociated(alice.publicKey, bob));
      expect(await chain.broadcast(again)).toMatchObject({ isAccepted: false, reason: 'reverts' });
      const patient = await sign([alice], createAssociated(alice.publicKey, bob, true));
      expect((await settled(patient)).kind).toBe('included');
    });

    test.each([
      ['more than there are', (from: PublicKey, to: PublicKey) => transferChecked({ from, to }, 501n)],
      [
        'other decimals than the mint has',
        (from: PublicKey, to: PublicKey) => transferChecked({ from, to, decimals: 9 }, 1n),
      ],
    ])('tokens: %s are not moved', async (_name, instruction) => {
      const [alice, bob] = [await funded(), newKeypair().publicKey];
      await world.fundToken(alice.publicKey, 500n);
      await world.fundToken(bob, 1n);
      const signed = await sign([alice], instruction(alice.publicKey, bob));
      expect(await chain.simulate(signed)).toMatchObject({ succeeds: false, reason: 'reverts' });
      expect(await chain.broadcast(signed)).toMatchObject({ isAccepted: false, reason: 'reverts' });
      expect(await tokensOf(alice.publicKey)).toBe(500n);
    });

    test('of another owner are moved only with a delegation, up to its amount', async () => {
      const [alice, bob] = [await funded(), await funded()];
      const carol = newKeypair().publicKey;
      await world.fundToken(alice.publicKey, 500n);
      await world.fundToken(carol, 1n);
      const spend = (amount: bigint) => transferToken(bob.publicKey, alice.publicKey, carol, amount);
      expect(await chain.broadcast(await sign([bob], spend(1n)))).toMatchObject({ reason: 'reverts' });
      await settled(await sign([alice], approve(alice.publicKey, bob.publicKey, 60n)));
      expect(await chain.broadcast(await sign([bob], spend(61n)))).toMatchObject({ reason: 'reverts' });
      expect((await settled(await sign([bob], spend(40n)))).kind).toBe('included');
      expect(await chain.broadcast(await sign([bob], spend(21n)))).toMatchObject({ reason: 'reverts' });
      expect((await settled(await sign([bob], spend(20n)))).kind).toBe('included');
      expect(await tokensOf(carol)).toBe(61n);
      expect(await chain.broadcast(await sign([bob], spend(1n)))).toMatchObject({ reason: 'reverts' });
    });

    test('leave an account that can be closed only when it is empty', async () => {
      const [alice, bob] = [await funded(), newKeypair().publicKey];
      await world.fundToken(alice.publicKey, 5n);
      await world.fundToken(bob, 1n);
      const early = await sign([alice], close(alice.publicKey));
      expect(await chain.broadcast(early)).toMatchObject({ isAccepted: false, reason: 'reverts' });
      const both = await sign(
        [alice],
        transferChecked({ from: alice.publicKey, to: bob }, 5n),
        close(alice.publicKey),
      );
      expect((await settled(both)).kind).toBe('included');
      expect(await chain.tokenAccounts(alice.publicKey.toBase58(), mint.toBase58())).toEqual([]);
      expect(await lamportsOf(alice.publicKey)).toBe(SOL - 5_000n + RENT_OF_TOKEN_ACCOUNT);
    });

    test('a failing instruction rolls back the ones before it', async () => {
      const [alice, bob] = [await funded(), newKeypair().publicKey];
      await world.fundToken(alice.publicKey, 5n);
      await world.fundToken(bob, 1n);
      const signed = await sign(
        [alice],
        transfer(alice, bob, 1_000_000n),
        transferChecked({ from: alice.publicKey, to: bob }, 6n),
      );
      expect(await chain.broadcast(signed)).toMatchObject({ isAccepted: false, reason: 'reverts' });
      expect(await lamportsOf(bob)).toBe(0n);
    });
  });
});

function hashOf(signed: Uint8Array): string {
  const { signatures } = VersionedTransaction.deserialize(signed);
  return getBase58Decoder().decode(signatures[0]!);
}
