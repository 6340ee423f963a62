import { getTransactionDecoder } from '@solana/kit';
import {
  type AccountMeta,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
} from '@solana/web3.js';
import fc from 'fast-check';
import * as litesvm from 'litesvm';
import { FailedTransactionMetadata, LiteSVM } from 'litesvm';
import { expect, test } from 'vitest';
import { adjustableClock } from '../../src/adapters/runtime.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../src/sandbox/simulated/chains/simulated-chains.ts';
import type { LiteSvmModule } from '../../src/sandbox/simulated/chains/solana/litesvm.ts';
import { errorOf } from '../support/litesvm-node.ts';

// The same random transactions of the system, token and associated token programs, executed by the real programs in
// LiteSVM and by a simulated chain: errors, fees, lamports, owners and data of all accounts are equal.

const caip2 = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const tokenProgram = new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
const associatedProgram = new PublicKey('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');
const memoProgram = new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');
const nativeMint = new PublicKey('So11111111111111111111111111111111111111112');
const rentSysvar = new PublicKey('SysvarRent111111111111111111111111111111111');

const keypair = (fill: number): Keypair => Keypair.fromSeed(new Uint8Array(32).fill(fill));
/** Wallets, then mints, then accounts that may become anything. */
const wallets = [1, 2, 3].map(keypair);
const mints = [11, 12].map(keypair);
const others = [21, 22, 23, 24].map(keypair);
const keypairs = [...wallets, ...mints, ...others];
const signerOf = new Map(keypairs.map((key) => [key.publicKey.toBase58(), key]));

function associated(owner: PublicKey, mint: PublicKey): PublicKey {
  const seeds = [owner, tokenProgram, mint].map((key) => key.toBuffer());
  return PublicKey.findProgramAddressSync(seeds, associatedProgram)[0];
}

const mintKeys = mints.map(({ publicKey }) => publicKey);
const associatedKeys = wallets.flatMap(({ publicKey }) =>
  [...mintKeys, nativeMint].map((mint) => associated(publicKey, mint)),
);
const watched = [...keypairs.map(({ publicKey }) => publicKey), ...associatedKeys];

const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
};
const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);

const wallet = fc.constantFrom(...wallets.map(({ publicKey }) => publicKey));
const mint = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...mintKeys) },
  { weight: 1, arbitrary: fc.constantFrom(nativeMint, ...watched) },
);
const anyKey = fc.constantFrom(...watched);
const tokenKey = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...associatedKeys) },
  { weight: 2, arbitrary: fc.constantFrom(...others.map(({ publicKey }) => publicKey)) },
  { weight: 1, arbitrary: anyKey },
);
const owner = fc.oneof({ weight: 8, arbitrary: wallet }, { weight: 1, arbitrary: anyKey });
const amount = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(0n, 1n, 5n, 70n, 1_000n) },
  { weight: 1, arbitrary: fc.constantFrom(2n ** 63n, 2n ** 64n - 1n) },
);
const lamportAmount = fc.constantFrom(
  ...[0n, 1n, 890_880n, 1_461_600n, 2_039_280n, 3_000_000n, 10n ** 9n, 10n ** 12n],
);
const decimals = fc.constantFrom(6, 6, 6, 9);
/** Whether a signature or the right to write is left out. */
const rarely = fc.oneof(
  { weight: 15, arbitrary: fc.constant(false) },
  { weight: 1, arbitrary: fc.constant(true) },
);

interface Loose {
  readonly instruction: TransactionInstruction;
}

const writable = (pubkey: PublicKey): AccountMeta => ({ pubkey, isSigner: false, isWritable: true });
const readonly = (pubkey: PublicKey): AccountMeta => ({ pubkey, isSigner: false, isWritable: false });
/** Signs if somebody has its key. */
const signer = (pubkey: PublicKey, isWritable = false): AccountMeta => ({
  ...{ pubkey, isWritable, isSigner: signerOf.has(pubkey.toBase58()) },
});

function token(keys: readonly AccountMeta[], ...data: (number | Buffer)[]): TransactionInstruction {
  const bytes = Buffer.concat(data.map((part) => (typeof part === 'number' ? Buffer.of(part) : part)));
  return new TransactionInstruction({ programId: tokenProgram, keys: [...keys], data: bytes });
}

const option = (key: PublicKey | null): Buffer =>
  key === null ? Buffer.of(0) : Buffer.concat([Buffer.of(1), key.toBuffer()]);
const maybeKey = fc.option(wallet, { nil: null });

const systemInstructions = fc.oneof(
  fc
    .record({ from: owner, to: anyKey, lamports: lamportAmount })
    .map(({ from, to, lamports }) => system([signer(from, true), writable(to)], u32(2), u64(lamports))),
  fc
    .record({
      ...{ from: owner, to: anyKey, lamports: lamportAmount },
      space: fc.constantFrom(0n, 82n, 165n, 200n, 10_485_761n),
      program: fc.constantFrom(tokenProgram, SystemProgram.programId, wallets[0]!.publicKey),
    })
    .map(({ from, to, lamports, space, program }) =>
      system([signer(from, true), signer(to, true)], u32(0), u64(lamports), u64(space), program.toBuffer()),
    ),
  fc
    .record({ key: anyKey, program: fc.constantFrom(tokenProgram, SystemProgram.programId) })
    .map(({ key, program }) => system([signer(key, true)], u32(1), program.toBuffer())),
  fc
    .record({ key: anyKey, space: fc.constantFrom(0n, 82n, 165n) })
    .map(({ key, space }) => system([signer(key, true)], u32(8), u64(space))),
  fc
    .record({ base: wallet, from: wallet, lamports: lamportAmount, isWrong: rarely })
    .chain(({ base, from, lamports, isWrong }) =>
      fc.constantFrom('a', 'seed', 'x'.repeat(32), 'x'.repeat(33)).map((seed) => {
        const bytes = Buffer.concat([u64(BigInt(seed.length)), Buffer.from(seed)]);
        const derived = isWrong || seed.length > 32 ? from : withSeed(base, seed);
        return system(
          [signer(from, true), writable(derived), ...(base.equals(from) ? [] : [signer(base)])],
          ...[u32(3), base.toBuffer(), bytes, u64(lamports), u64(0n), SystemProgram.programId.toBuffer()],
        );
      }),
    ),
);

const seeded = new Map<string, PublicKey>();
/** `createWithSeed` of web3.js is asynchronous. */
function withSeed(base: PublicKey, seed: string): PublicKey {
  return seeded.get(`${base.toBase58()} ${seed}`)!;
}

function system(keys: AccountMeta[], ...data: Buffer[]): TransactionInstruction {
  return new TransactionInstruction({ programId: SystemProgram.programId, keys, data: Buffer.concat(data) });
}

const accounts = fc.record({ from: tokenKey, to: tokenKey, mint, by: owner, amount, decimals });

const tokenInstructions = fc.oneof(
  fc
    .record({ mint, decimals, authority: wallet, freeze: maybeKey, isFirst: fc.boolean() })
    .map(({ mint: key, decimals: places, authority, freeze, isFirst }) =>
      token(
        isFirst ? [writable(key), readonly(rentSysvar)] : [writable(key)],
        ...[isFirst ? 0 : 20, places, authority.toBuffer(), option(freeze)],
      ),
    ),
  fc
    .record({ key: anyKey, mint, by: owner, kind: fc.constantFrom(1, 16, 18) })
    .map(({ key, by, kind, ...each }) => {
      const start = [writable(key), readonly(each.mint)];
      if (kind === 1) return token([...start, readonly(by), readonly(rentSysvar)], 1);
      if (kind === 16) return token([...start, readonly(rentSysvar)], 16, by.toBuffer());
      return token(start, 18, by.toBuffer());
    }),
  accounts.map(({ from, to, by, amount: units }) =>
    token([writable(from), writable(to), signer(by)], 3, u64(units)),
  ),
  accounts.map(({ from, to, by, amount: units, ...each }) =>
    token(
      [writable(from), readonly(each.mint), writable(to), signer(by)],
      ...[12, u64(units), each.decimals],
    ),
  ),
  accounts.map(({ from, to, by, amount: units }) =>
    token([writable(from), readonly(to), signer(by)], 4, u64(units)),
  ),
  accounts
    .chain((each) => wallet.map((delegate) => ({ ...each, delegate })))
    .map(({ from, delegate, by, amount: units }) =>
      token([writable(from), readonly(delegate), signer(by)], 4, u64(units)),
    ),
  accounts.map(({ from, to, by, amount: units, ...each }) =>
    token(
      [writable(from), readonly(each.mint), readonly(to), signer(by)],
      ...[13, u64(units), each.decimals],
    ),
  ),
  accounts.map(({ from, by }) => token([writable(from), signer(by)], 5)),
  fc
    .record({
      ...{ key: fc.oneof(tokenKey, mint), by: owner, next: maybeKey },
      kind: fc.constantFrom(0, 1, 2, 3, 4),
    })
    .map(({ key, by, next, kind }) => token([writable(key), signer(by)], 6, kind, option(next))),
  accounts.map(({ to, by, amount: units, ...each }) =>
    token([writable(each.mint), writable(to), signer(by)], 7, u64(units)),
  ),
  accounts.map(({ to, by, amount: units, ...each }) =>
    token([writable(each.mint), writable(to), signer(by)], ...[14, u64(units), each.decimals]),
  ),
  accounts.map(({ from, by, amount: units, ...each }) =>
    token([writable(from), writable(each.mint), signer(by)], 8, u64(units)),
  ),
  accounts.map(({ from, by, amount: units, ...each }) =>
    token([writable(from), writable(each.mint), signer(by)], ...[15, u64(units), each.decimals]),
  ),
  accounts.map(({ from, to, by }) => token([writable(from), writable(to), signer(by)], 9)),
  accounts
    .chain((each) => wallet.map((to) => ({ ...each, to })))
    .map(({ from, to, by }) => token([writable(from), writable(to), signer(by)], 9)),
  fc
    .record({ key: tokenKey, mint, by: owner, kind: fc.constantFrom(10, 11) })
    .map(({ key, by, kind, ...each }) => token([writable(key), readonly(each.mint), signer(by)], kind)),
  tokenKey.map((key) => token([writable(key)], 17)),
  mint.map((key) => token([readonly(key)], 21)),
  tokenKey.map((key) => token([writable(key)], 22)),
);

/** Instructions whose accounts fit together, so that many of them succeed. */
const fitting = fc
  .record({
    ...{ by: wallet, to: wallet, key: fc.constantFrom(...mintKeys), delegate: wallet },
    ...{ units: fc.constantFrom(0n, 1n, 5n, 70n), kind: fc.constantFrom(3, 4, 5, 7, 8, 9, 10, 11, 12, 14) },
  })
  .map(({ by, to, key, delegate, units, kind }) => {
    const [from, target] = [associated(by, key), associated(to, key)];
    const minter = wallets[0]!.publicKey;
    switch (kind) {
      case 4:
        return token([writable(from), readonly(delegate), signer(by)], kind, u64(units));
      case 5:
        return token([writable(from), signer(by)], kind);
      case 7:
        return token([writable(key), writable(target), signer(minter)], kind, u64(units));
      case 14:
        return token([writable(key), writable(target), signer(minter)], kind, u64(units), 6);
      case 8:
        return token([writable(from), writable(key), signer(by)], kind, u64(units));
      case 9:
        return token([writable(from), writable(to), signer(by)], kind);
      case 10:
      case 11:
        return token([writable(from), readonly(key), signer(minter)], kind);
      case 12:
        return token([writable(from), readonly(key), writable(target), signer(by)], kind, u64(units), 6);
      default:
        return token([writable(from), writable(target), signer(delegate)], kind, u64(units));
    }
  });

const associatedInstructions = fc
  .record({
    payer: wallet,
    owner: wallet,
    mint,
    isIdempotent: fc.boolean(),
    wrong: fc.option(anyKey, { freq: 12 }),
  })
  .map(({ payer, owner: holder, isIdempotent, wrong, ...each }) => {
    const key = wrong ?? associated(holder, each.mint);
    return new TransactionInstruction({
      programId: associatedProgram,
      keys: [
        ...[signer(payer, true), writable(key), readonly(holder), readonly(each.mint)],
        ...[readonly(SystemProgram.programId), readonly(tokenProgram)],
      ],
      data: isIdempotent ? Buffer.of(1) : Buffer.alloc(0),
    });
  });

const memoInstructions = fc.record({ by: fc.option(wallet), text: fc.constantFrom('hello', '💥', '') }).map(
  ({ by, text }) =>
    new TransactionInstruction({
      ...{ programId: memoProgram, keys: by === null ? [] : [signer(by)], data: Buffer.from(text) },
    }),
);

/** An instruction whose accounts may lack a signature, the right to write, or the last account. */
const instruction = fc
  .record({
    made: fc.oneof(
      { weight: 3, arbitrary: systemInstructions },
      { weight: 8, arbitrary: tokenInstructions },
      { weight: 12, arbitrary: fitting },
      { weight: 2, arbitrary: associatedInstructions },
      { weight: 1, arbitrary: memoInstructions },
    ),
    ...{ isUnsigned: rarely, isReadOnly: rarely, isShort: rarely },
  })
  .map(({ made, isUnsigned, isReadOnly, isShort }): Loose => {
    const keys = made.keys.map((meta) => ({
      ...meta,
      isSigner: meta.isSigner && !isUnsigned,
      isWritable: meta.isWritable && !isReadOnly,
    }));
    const { programId, data } = made;
    const kept = isShort ? keys.slice(0, -1) : keys;
    return { instruction: new TransactionInstruction({ programId, data, keys: kept }) };
  });

const transaction = fc.record({
  payer: fc.constantFrom(...wallets),
  instructions: fc.array(instruction, { minLength: 1, maxLength: 3 }),
});

/** Two mints, and accounts with tokens and wrapped SOL, so that later instructions have something to do. */
function setup(): { payer: Keypair; instructions: Loose[] }[] {
  const payer = wallets[0]!;
  const mintInstructions = mintKeys.flatMap((key, index) => [
    system(
      [signer(payer.publicKey, true), signer(key, true)],
      u32(0),
      u64(1_461_600n),
      u64(82n),
      tokenProgram.toBuffer(),
    ),
    token(
      [writable(key)],
      ...[20, 6, payer.publicKey.toBuffer(), option(index === 0 ? payer.publicKey : null)],
    ),
  ]);
  const accountInstructions = wallets.map(({ publicKey }) =>
    [...mintKeys, nativeMint].map(
      (each) =>
        new TransactionInstruction({
          programId: associatedProgram,
          keys: [
            ...[signer(payer.publicKey, true), writable(associated(publicKey, each)), readonly(publicKey)],
            ...[readonly(each), readonly(SystemProgram.programId), readonly(tokenProgram)],
          ],
          data: Buffer.of(1),
        }),
    ),
  );
  const filled = wallets
    .slice(0, 2)
    .flatMap(({ publicKey }) =>
      mintKeys.map((key) =>
        token([writable(key), writable(associated(publicKey, key)), signer(payer.publicKey)], 7, u64(1_000n)),
      ),
    );
  const account = associated(payer.publicKey, nativeMint);
  const wrapped = [
    system([signer(payer.publicKey, true), writable(account)], u32(2), u64(5_000n)),
    token([writable(account)], 17),
  ];
  return [mintInstructions, ...accountInstructions, filled, wrapped].map((list) => ({
    ...{ payer, instructions: list.map((each) => ({ instruction: each })) },
  }));
}

interface World {
  readonly chains: SimulatedChains;
  readonly svm: LiteSVM;
  readonly seen: Map<string, number>;
}

async function rpc(
  { chains }: Pick<World, 'chains'>,
  method: string,
  ...params: unknown[]
): Promise<unknown> {
  const caller = { signal: new AbortController().signal, isLate: () => false };
  const outcome = await chains.rpc(caip2, { method, params }, caller);
  if ('error' in outcome) throw new Error(`${method}: ${JSON.stringify(outcome.error)}`);
  return outcome.result;
}

async function runOnBoth(
  world: World,
  { payer, instructions }: { readonly payer: Keypair; readonly instructions: readonly Loose[] },
): Promise<void> {
  const { svm, seen } = world;
  const { value } = (await rpc(world, 'getLatestBlockhash')) as { value: { blockhash: string } };
  const built = new Transaction({ feePayer: payer.publicKey, recentBlockhash: value.blockhash });
  built.add(...instructions.map((each) => each.instruction));
  const signers = built
    .compileMessage()
    .accountKeys.slice(0, built.compileMessage().header.numRequiredSignatures);
  built.sign(...signers.map((key) => signerOf.get(key.toBase58())!));
  const wire = built.serialize();
  const real = svm.sendTransaction(getTransactionDecoder().decode(wire) as never);
  const expected = real instanceof FailedTransactionMetadata ? errorOf(real) : null;
  const options = { encoding: 'base64', skipPreflight: true };
  const signature = await rpc(world, 'sendTransaction', wire.toString('base64'), options);
  const { value: statuses } = (await rpc(world, 'getSignatureStatuses', [signature])) as {
    value: ({ err: unknown } | null)[];
  };
  const [status] = statuses;
  const about = [
    ...instructions.map((each) => shown(each.instruction)),
    ...(real instanceof FailedTransactionMetadata ? real.meta().logs() : []),
  ].join('\n');
  // What no block can include has no status.
  const isDropped = ['InsufficientFundsForFee', 'AccountNotFound', 'InvalidAccountForFee'].includes(
    String(expected),
  );
  expect(status?.err ?? null, about).toEqual(isDropped ? null : expected);
  const kind = JSON.stringify(expected)?.replace(/\[\d+,/, '[');
  seen.set(kind, (seen.get(kind) ?? 0) + 1);
  await compareAccounts(world, about);
}

/** What a failure of this test says about an instruction. */
function shown({ programId, keys, data }: TransactionInstruction): string {
  const metas = keys.map(({ pubkey, isSigner, isWritable }) => {
    const name = watched.findIndex((key) => key.equals(pubkey));
    return `${name === -1 ? pubkey.toBase58() : name}${isSigner ? 's' : ''}${isWritable ? 'w' : ''}`;
  });
  return `${programId.toBase58().slice(0, 5)} ${data.toString('hex')} ${metas.join(' ')}`;
}

async function compareAccounts(world: World, about: string): Promise<void> {
  const addresses = watched.map((key) => key.toBase58());
  const { value } = (await rpc(world, 'getMultipleAccounts', addresses)) as {
    value: ({ lamports: number; owner: string; data: [string, string] } | null)[];
  };
  for (const [index, found] of value.entries()) {
    const real = world.svm.getAccount(addresses[index] as never);
    const expected = real.exists
      ? [Number(real.lamports), real.programAddress, Buffer.from(real.data).toString('base64')]
      : null;
    const held = found === null ? null : [found.lamports, found.owner, found.data[0]];
    const isGone = expected === null || expected[0] === 0;
    expect(held, `${addresses[index]}: ${about}`).toEqual(isGone ? null : expected);
  }
}

/** What the faucet gave and programs minted is what all accounts hold, and the supply of each mint. */
async function requireBalance(world: World): Promise<void> {
  for (const { tokenAddress, given, minted, held } of await world.chains.books()) {
    const total = Object.values(held).reduce((sum, each) => sum + each, 0n);
    expect(`${tokenAddress} ${total}`).toBe(`${tokenAddress} ${given + minted}`);
    if (tokenAddress === null) continue;
    const { value } = (await rpc(world, 'getTokenSupply', tokenAddress)) as { value: { amount: string } };
    expect(value.amount).toBe(String(total));
  }
}

const runs = process.env.TEST_LONG === undefined ? 5 : 600;

const executors: Readonly<Record<string, () => Promise<LiteSvmModule | undefined>>> = {
  'the programs of this server': async () => undefined,
  // The accounts come from the store of the chain and go back there.
  'the package litesvm': async () => litesvm as unknown as LiteSvmModule,
};

test.each(Object.entries(executors))(
  '%s: a chain does what the real programs do',
  async (_, liteSvm) => {
    for (const { publicKey } of wallets) {
      for (const seed of ['a', 'seed', 'x'.repeat(32)]) {
        const key = await PublicKey.createWithSeed(publicKey, seed, SystemProgram.programId);
        seeded.set(`${publicKey.toBase58()} ${seed}`, key);
      }
    }
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(transaction, { minLength: 10, maxLength: 20 }), async (list) => {
        const clock = adjustableClock({ startMs: Date.UTC(2026, 0, 1), frozen: true });
        const chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: 0, liteSvm });
        const svm = new LiteSVM().withNativeMints().withBlockhashCheck(false).withTransactionHistory(0n);
        const world = { chains, svm, seen };
        try {
          for (const { publicKey } of wallets) {
            const address = publicKey.toBase58();
            await rpc(world, 'requestAirdrop', address, 10 ** 10);
            svm.airdrop(address as never, (10n ** 10n) as never);
          }
          for (const each of [...setup(), ...list]) await runOnBoth(world, each);
          await requireBalance(world);
        } finally {
          await chains.close();
        }
      }),
      { numRuns: runs, ...(process.env.TEST_LONG === undefined ? { seed: 46 } : {}) },
    );
    // The walks reached successes, and most errors.
    expect(seen.get('null')).toBeGreaterThan(runs * 8);
    expect(seen.size).toBeGreaterThan(15);
  },
  600_000,
);
