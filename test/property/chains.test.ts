import { Keypair, PublicKey, SystemProgram, Transaction, TransactionInstruction } from '@solana/web3.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AdjustableClock, adjustableClock } from '../../src/adapters/runtime.ts';
import { bytesTo0xHex, hexToBytes } from '../../src/engine/crypto/encoding.ts';
import { signEthereumTransaction } from '../../src/engine/signing/ethereum/any-transaction.ts';
import { signAuthorization } from '../../src/engine/signing/ethereum/authorization.ts';
import { BATCH_EXECUTOR_ADDRESS, encodeBatch } from '../../src/engine/signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../../src/engine/signing/ethereum/contract-calls.ts';
import { ethereumAddress } from '../../src/engine/signing/ethereum/signer.ts';
import { associatedTokenAddress, TOKEN_PROGRAM } from '../../src/engine/signing/solana/associated-token.ts';
import type { EvmChain, SolanaChain } from '../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../src/sandbox/simulated/chains/simulated-chains.ts';

const evmId = 'eip155:8453';
const solanaId = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const token = `0x${'cc'.repeat(20)}`;
const secrets = [1, 2, 3].map((fill) => new Uint8Array(32).fill(fill));
const owners = secrets.map(ethereumAddress);
const keys = secrets.map((secret) => Keypair.fromSeed(secret));
const mint = Keypair.fromSeed(new Uint8Array(32).fill(9)).publicKey.toBase58();
/** Sentinels among the recipients: stuck, replaced, reverted. */
const strangers = ['dead0001', 'dead0002', 'dead0003', 'beef0000'].map((end) => `0x${'ab'.repeat(16)}${end}`);

/** The sentinel of a revert, on Solana. */
const revertingKey = new PublicKey(Buffer.concat([Buffer.alloc(28, 0xab), Buffer.from('dead0003', 'hex')]));

const who = fc.nat({ max: 2 });
const amount = fc.oneof(fc.bigInt(0n, 3_000_000_000n), fc.bigInt(0n, 10n ** 18n));
const recipient = fc.oneof(
  who.map((index) => owners[index]!),
  fc.constantFrom(...strangers),
);
/** The fee in tenths of the suggested one, low enough to be replaced or high enough to replace. */
const bid = fc.integer({ min: 8, max: 20 });
/** The next nonce, or one that is used, pending or too early. */
const nonceShift = fc.constantFrom(0, 0, 0, 0, -1, 1);

const actions = fc.oneof(
  fc.record({ kind: fc.constant('fund' as const), who, amount, isToken: fc.boolean() }),
  fc.record({ kind: fc.constant('send' as const), who, to: recipient, amount, bid, nonceShift }),
  fc.record({ kind: fc.constant('sendToken' as const), who, to: recipient, amount, bid, nonceShift }),
  fc.record({ kind: fc.constant('spend' as const), who, from: who, to: recipient, amount }),
  fc.record({ kind: fc.constant('batch' as const), who, to: recipient, amount, isDelegating: fc.boolean() }),
  fc.record({
    kind: fc.constant('solana' as const),
    who,
    to: fc.nat({ max: 3 }),
    amount,
    isToken: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('mine' as const) }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: -5_000, max: 60_000 }) }),
);
type Action = typeof actions extends fc.Arbitrary<infer T> ? T : never;

interface World {
  readonly clock: AdjustableClock;
  readonly chains: SimulatedChains;
  readonly evm: EvmChain;
  readonly solana: SolanaChain;
  /** The deposits of the faucet, by chain and asset. */
  readonly given: Map<string, bigint>;
  /** What the chains took. */
  readonly sent: {
    readonly chain: EvmChain | SolanaChain;
    readonly hash: string;
    readonly bytes: Uint8Array;
  }[];
}

async function sendEvm(
  { evm, sent }: World,
  {
    who: index,
    nonceShift: shift = 0,
    bid: tenths = 10,
    ...call
  }: {
    who: number;
    nonceShift?: number;
    bid?: number;
    to: string;
    value?: bigint;
    data?: Uint8Array;
    delegates?: boolean;
  },
): Promise<void> {
  const nonce = Math.max(0, Number(await evm.nonce(owners[index]!)) + shift);
  const { maxFeePerGas, maxPriorityFeePerGas } = await evm.fees();
  const contract = BATCH_EXECUTOR_ADDRESS;
  const authorization = signAuthorization(secrets[index]!, { contract, chain_id: 8453, nonce: nonce + 1 });
  const hex = await signEthereumTransaction(secrets[index]!, {
    transaction: {
      type: call.delegates === true ? 4 : 2,
      chain_id: 8453,
      nonce,
      to: call.to,
      value: `0x${(call.value ?? 0n).toString(16)}`,
      data: bytesTo0xHex(call.data ?? new Uint8Array()),
      gas_limit: call.data === undefined ? 21_000 : 300_000,
      max_fee_per_gas: `0x${((maxFeePerGas * BigInt(tenths)) / 10n).toString(16)}`,
      max_priority_fee_per_gas: `0x${(((maxPriorityFeePerGas ?? 0n) * BigInt(tenths)) / 10n).toString(16)}`,
      ...(call.delegates === true ? { authorization_list: [authorization] } : {}),
    },
  });
  const bytes = hexToBytes(hex.slice(2));
  const outcome = await evm.broadcast(bytes);
  if (outcome.isAccepted) sent.push({ chain: evm, hash: outcome.hash, bytes });
}

async function sendSolana(
  { solana, sent }: World,
  action: Extract<Action, { kind: 'solana' }>,
): Promise<void> {
  const from = keys[action.who]!;
  const to = keys[action.to]?.publicKey ?? revertingKey;
  const lamports = action.amount % 2n ** 63n;
  const { blockhash } = await solana.latestBlockhash();
  const data = Buffer.alloc(9);
  data[0] = 3;
  data.writeBigUInt64LE(lamports, 1);
  const [source, target] = [from.publicKey, to].map(
    (key) => new PublicKey(associatedTokenAddress(key.toBase58(), mint)),
  );
  const instruction = action.isToken
    ? new TransactionInstruction({
        programId: new PublicKey(TOKEN_PROGRAM),
        keys: [
          { pubkey: source!, isSigner: false, isWritable: true },
          { pubkey: target!, isSigner: false, isWritable: true },
          { pubkey: from.publicKey, isSigner: true, isWritable: false },
        ],
        data,
      })
    : SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: to, lamports });
  const transaction = new Transaction({ feePayer: from.publicKey, recentBlockhash: blockhash }).add(
    instruction,
  );
  transaction.sign(from);
  const bytes = new Uint8Array(transaction.serialize());
  const outcome = await solana.broadcast(bytes);
  if (outcome.isAccepted) sent.push({ chain: solana, hash: outcome.hash, bytes });
}

async function fund(
  world: World,
  { who: index, amount: rawAmount, isToken }: Extract<Action, { kind: 'fund' }>,
) {
  const { chains, given } = world;
  const note = (key: string, sum: bigint) => given.set(key, (given.get(key) ?? 0n) + sum);
  await chains.fund(evmId, { address: owners[index]!, tokenAddress: isToken ? token : null, rawAmount });
  note(isToken ? 'evm token' : 'evm', rawAmount);
  const address = keys[index]!.publicKey.toBase58();
  const isNew = isToken && (await world.solana.tokenAccounts(address, mint)).length === 0;
  const held = isToken ? mint : null;
  const before = await chains.total(solanaId, null);
  const funded = await chains.fund(solanaId, { address, tokenAddress: held, rawAmount });
  if ('fault' in funded) return;
  note(isToken ? 'solana token' : 'solana', rawAmount);
  // The faucet pays for the account that it creates.
  if (isNew) note('solana', (await chains.total(solanaId, null)) - before);
}

async function run(world: World, action: Action): Promise<unknown> {
  const { chains, clock } = world;
  if (action.kind === 'fund') return fund(world, action);
  if (action.kind === 'solana') return sendSolana(world, action);
  if (action.kind === 'mine') return chains.mine(undefined, 1);
  if (action.kind === 'wait') return clock.advance(action.ms);
  if (action.kind === 'send') return sendEvm(world, { ...action, value: action.amount });
  if (action.kind === 'sendToken') {
    const data = encodeTokenCall({ name: 'transfer', to: action.to, amount: action.amount });
    return sendEvm(world, { ...action, to: token, data });
  }
  if (action.kind === 'spend') {
    const spender = owners[action.who]!;
    const approve = encodeTokenCall({ name: 'approve', spender, amount: action.amount / 2n });
    await sendEvm(world, { who: action.from, to: token, data: approve });
    const from = owners[action.from]!;
    const data = encodeTokenCall({ name: 'transferFrom', from, to: action.to, amount: action.amount / 3n });
    return sendEvm(world, { who: action.who, to: token, data });
  }
  const transfer = encodeTokenCall({ name: 'transfer', to: action.to, amount: action.amount });
  const data = encodeBatch([
    { to: action.to, value: action.amount / 2n, data: new Uint8Array() },
    { to: token, value: 0n, data: transfer },
  ]);
  return sendEvm(world, { who: action.who, to: owners[action.who]!, data, delegates: action.isDelegating });
}

async function totals({ chains }: World): Promise<Record<string, bigint>> {
  return {
    evm: await chains.total(evmId, null),
    'evm token': await chains.total(evmId, token),
    solana: await chains.total(solanaId, null),
    'solana token': await chains.total(solanaId, mint),
  };
}

test('the total supply of a chain changes only by the faucet', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(actions, { maxLength: 40 }), async (list) => {
      const clock = adjustableClock({ startMs: Date.UTC(2026, 0, 1), frozen: true });
      const chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: undefined });
      const [evm, solana] = [chains.find(evmId) as EvmChain, chains.find(solanaId) as SolanaChain];
      const world: World = { clock, chains, evm, solana, given: new Map(), sent: [] };
      // The chain begins with the mint of wrapped SOL, whose rent the faucet pays.
      await chains.head(solanaId);
      world.given.set('solana', await chains.total(solanaId, null));
      try {
        for (const index of [0, 1, 2])
          await run(world, { kind: 'fund', who: index, amount: 10n ** 16n, isToken: false });
        for (const action of list) {
          await run(world, action);
          for (const [asset, total] of Object.entries(await totals(world))) {
            expect(`${asset} ${total}`).toBe(`${asset} ${world.given.get(asset) ?? 0n}`);
          }
        }
        await chains.mine(undefined, 1);
        for (const asset of [null, token]) {
          const held = await Promise.all(
            [...owners, ...strangers].map((owner) => evm.balances(owner, [asset])),
          );
          expect(held.every(([balance]) => balance! >= 0n)).toBe(true);
        }
        for (const { chain, hash, bytes } of world.sent) {
          seen.add(`${chain.kind} ${(await chain.statusOf(hash, bytes)).kind}`);
        }
      } finally {
        await chains.close();
      }
    }),
    process.env.TEST_LONG === undefined ? { numRuns: 60, seed: 9 } : { numRuns: 2_000 },
  );
  // The walks reached every final state. Solana accepts only transactions that succeed on arrival.
  expect([...seen].sort()).toEqual(expect.arrayContaining(everyEnd));
}, 120_000);

const everyEnd = [
  'evm included',
  'evm pending',
  'evm replaced',
  'evm reverted',
  'solana included',
  'solana reverted',
];
