import {
  Connection,
  type Finality,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SendTransactionError,
  type SignaturesForAddressOptions,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bytesToBase58 } from '../../../src/engine/crypto/encoding.ts';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// The usual flows of @solana/web3.js, unmodified, against the URL of a chain.

const memoProgram = new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');

let sandbox: TestSandbox;
let connection: Connection;

beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0 });
  const url = `${sandbox.rpcUrl}/solana`;
  connection = new Connection(url, { commitment: 'confirmed', wsEndpoint: url.replace('http', 'ws') });
});
/** The part of the client's WebSocket that ends it. */
interface Socket {
  connect: () => void;
  close: () => void;
  setAutoReconnect: (isOn: boolean) => void;
}

afterAll(async () => {
  // Otherwise the client reconnects for ever, and writes `ws error` into the output that the worker's next tests read.
  const { _rpcWebSocket: socket } = connection as unknown as { _rpcWebSocket: Socket };
  socket.setAutoReconnect(false);
  // The connection opens it again by itself while it has subscriptions.
  socket.connect = () => undefined;
  socket.close();
  await sandbox.close();
});

async function funded(sol = 10): Promise<Keypair> {
  const keypair = Keypair.generate();
  const signature = await connection.requestAirdrop(keypair.publicKey, sol * LAMPORTS_PER_SOL);
  await connection.confirmTransaction({ signature, ...(await connection.getLatestBlockhash()) });
  return keypair;
}

const transfer = (from: Keypair, to: PublicKey, lamports: number) =>
  SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: to, lamports });

test('an airdrop, a transfer with a memo, and the parsed transaction', async () => {
  const [alice, bob] = [await funded(), Keypair.generate().publicKey];
  const memo = new TransactionInstruction({ programId: memoProgram, keys: [], data: Buffer.from('rent') });
  const instructions = new Transaction().add(transfer(alice, bob, LAMPORTS_PER_SOL), memo);
  const signature = await sendAndConfirmTransaction(connection, instructions, [alice]);
  expect(await connection.getBalance(bob)).toBe(LAMPORTS_PER_SOL);
  const parsed = await connection.getParsedTransaction(signature);
  expect(parsed?.meta).toMatchObject({ err: null, fee: 5_000 });
  expect(parsed?.transaction.message.instructions).toMatchObject([
    {
      program: 'system',
      parsed: { type: 'transfer', info: { destination: bob.toBase58(), lamports: LAMPORTS_PER_SOL } },
    },
    { program: 'spl-memo', parsed: 'rent' },
  ]);
  expect(await connection.getSignaturesForAddress(bob)).toMatchObject([
    { signature, err: null, memo: '[4] rent', confirmationStatus: 'confirmed' },
  ]);
  const { slot = 0 } = parsed ?? {};
  const block = await connection.getBlock(slot, { maxSupportedTransactionVersion: 0 });
  expect(block).toMatchObject({ parentSlot: slot - 1, transactions: [{ meta: { err: null } }] });
  expect(block?.transactions[0]?.transaction.signatures).toEqual([signature]);
  expect(await connection.getBlocks(slot - 2, slot)).toEqual([slot - 2, slot - 1, slot]);
  expect(await connection.getBlockTime(slot)).toBe(parsed?.blockTime);
});

test('the signatures of an address, page by page', async () => {
  const [alice, bob] = [await funded(20), Keypair.generate().publicKey];
  const sent: string[] = [];
  for (let count = 1; count <= 5; count += 1) {
    const instructions = new Transaction().add(transfer(alice, bob, count * LAMPORTS_PER_SOL));
    sent.unshift(await sendAndConfirmTransaction(connection, instructions, [alice]));
  }
  const listed = async (options?: SignaturesForAddressOptions, level?: Finality): Promise<string[]> => {
    const infos = await connection.getSignaturesForAddress(bob, options, level);
    return infos.map(({ signature }) => signature);
  };
  const [newest, second, third, fourth, oldest] = sent as [string, string, string, string, string];
  expect(await listed()).toEqual(sent);
  expect(await listed({ limit: 2 })).toEqual([newest, second]);
  expect(await listed({ limit: 2, before: second })).toEqual([third, fourth]);
  expect(await listed({ before: fourth })).toEqual([oldest]);
  expect(await listed({ before: oldest })).toEqual([]);
  expect(await listed({ until: fourth })).toEqual([newest, second, third]);
  expect(await listed({ before: newest, until: fourth, limit: 1 })).toEqual([second]);
  expect(await listed({ before: fourth, until: newest })).toEqual([]);
  // Agave lists nothing before a signature that it does not know, and ignores an end that it does not know.
  const unknown = bytesToBase58(new Uint8Array(64).fill(7));
  expect(await listed({ before: unknown })).toEqual([]);
  expect(await listed({ until: unknown })).toEqual(sent);
  // The airdrop of another account ends the list, although it does not name this one.
  const [airdrop] = await connection.getSignaturesForAddress(alice.publicKey, { before: oldest });
  expect(await listed({ before: airdrop!.signature })).toEqual([]);
  expect(await listed({ until: airdrop!.signature })).toEqual(sent);
  // No block of them is final yet.
  expect(await listed({}, 'finalized')).toEqual([]);
  expect(await listed({ before: newest }, 'finalized')).toEqual([]);
  await sandbox.mine(32, 'solana');
  expect(await listed({ before: newest }, 'finalized')).toEqual(sent.slice(1));
  await expect(listed({ limit: 1_001 })).rejects.toThrow('Invalid limit; max 1000');
  await expect(listed({ limit: 0 })).rejects.toThrow('Invalid limit; max 1000');
  await expect(listed({ before: 'short' })).rejects.toThrow('Invalid param');
});

test('signatures, accounts, logs and slots by subscription', async () => {
  const [alice, bob] = [await funded(), Keypair.generate().publicKey];
  const seen: Record<string, unknown[]> = { account: [], logs: [], slot: [], signature: [] };
  const subscribed = [
    connection.onAccountChange(bob, ({ lamports }) => seen.account!.push(lamports)),
    connection.onLogs(bob, ({ err, logs }) => seen.logs!.push([err, logs.length])),
    connection.onSlotChange(({ slot, parent }) => seen.slot!.push(slot - parent)),
  ];
  // The subscriptions have no promise of their own.
  await expect
    .poll(async () => {
      await sandbox.mine(1, 'solana');
      return seen.slot!.length;
    })
    .toBeGreaterThan(0);
  const { blockhash } = await connection.getLatestBlockhash();
  const message = new TransactionMessage({
    ...{ payerKey: alice.publicKey, recentBlockhash: blockhash },
    instructions: [transfer(alice, bob, 5_000_000)],
  }).compileToV0Message();
  const transaction = new VersionedTransaction(message);
  transaction.sign([alice]);
  const signature = await connection.sendTransaction(transaction);
  connection.onSignature(signature, ({ err }) => seen.signature!.push(err));
  await expect.poll(() => seen).toMatchObject({ account: [5_000_000], logs: [[null, 2]], signature: [null] });
  await connection.removeAccountChangeListener(subscribed[0]!);
  await connection.removeAccountChangeListener(subscribed[0]!);
  await connection.removeOnLogsListener(subscribed[1]!);
  await connection.removeSlotChangeListener(subscribed[2]!);
});

test('failures have the codes, messages and logs of a node', async () => {
  const [alice, bob] = [await funded(1), Keypair.generate().publicKey];
  const simulated = await connection.simulateTransaction(
    new Transaction({ feePayer: alice.publicKey, ...(await connection.getLatestBlockhash()) }).add(
      transfer(alice, bob, 2 * LAMPORTS_PER_SOL),
    ),
    [alice],
  );
  expect(simulated.value).toMatchObject({ err: { InstructionError: [0, { Custom: 1 }] } });
  expect(simulated.value.logs?.at(-1)).toMatch(/failed: custom program error: 0x1$/);
  const send = (...instructions: TransactionInstruction[]) =>
    sendAndConfirmTransaction(connection, new Transaction().add(...instructions), [alice]).catch(
      (error: unknown) => error,
    );
  const failure = await send(transfer(alice, bob, 2 * LAMPORTS_PER_SOL));
  expect(failure).toBeInstanceOf(SendTransactionError);
  expect(String(failure)).toContain('Error processing Instruction 0: custom program error: 0x1');
  expect((failure as SendTransactionError).logs).toHaveLength(3);
  const unknown = new TransactionInstruction({ programId: Keypair.generate().publicKey, keys: [] });
  expect(String(await send(unknown))).toContain('Attempt to load a program that does not exist');
  const notProgram = new TransactionInstruction({ programId: (await funded(1)).publicKey, keys: [] });
  expect(String(await send(notProgram))).toContain('may not be used for executing instructions');
});

test('the fee of a message, and a blockhash until it expires', async () => {
  const [alice, bob] = [await funded(), Keypair.generate().publicKey];
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
  const transaction = new Transaction({ feePayer: alice.publicKey, blockhash, lastValidBlockHeight }).add(
    transfer(alice, bob, 1_000_000),
  );
  const message = transaction.compileMessage();
  expect((await connection.getFeeForMessage(message)).value).toBe(5_000);
  expect((await connection.isBlockhashValid(blockhash)).value).toBe(true);
  expect(lastValidBlockHeight - (await connection.getBlockHeight())).toBe(150);
  transaction.sign(alice);
  const wire = transaction.serialize();
  await sandbox.mine(150, 'solana');
  expect((await connection.isBlockhashValid(blockhash)).value).toBe(true);
  await sandbox.mine(1, 'solana');
  expect((await connection.isBlockhashValid(blockhash)).value).toBe(false);
  expect((await connection.getFeeForMessage(message)).value).toBeNull();
  await expect(connection.sendRawTransaction(wire)).rejects.toThrow('Blockhash not found');
  // Without a preflight, nobody includes it.
  const signature = await connection.sendRawTransaction(wire, { skipPreflight: true });
  expect((await connection.getSignatureStatus(signature)).value).toBeNull();
});

test('a transaction that was processed is not processed again', async () => {
  const [alice, bob] = [await funded(), Keypair.generate().publicKey];
  const transaction = new Transaction({
    ...{ feePayer: alice.publicKey, ...(await connection.getLatestBlockhash()) },
  }).add(transfer(alice, bob, 1_000_000));
  transaction.sign(alice);
  await connection.sendRawTransaction(transaction.serialize());
  await expect(connection.sendRawTransaction(transaction.serialize())).rejects.toThrow(
    'This transaction has already been processed',
  );
  expect(await connection.getBalance(bob)).toBe(1_000_000);
});

test('what a node says about itself', async () => {
  expect(await connection.getGenesisHash()).toBe('5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d');
  expect(await connection.getVersion()).toHaveProperty('solana-core');
  const { absoluteSlot, epoch, slotIndex, slotsInEpoch } = await connection.getEpochInfo();
  expect(epoch * slotsInEpoch + slotIndex).toBe(absoluteSlot);
  expect(await connection.getSlot('finalized')).toBe((await connection.getSlot('confirmed')) - 32);
  expect(await connection.getMinimumBalanceForRentExemption(165)).toBe(2_039_280);
  const fees = await connection.getRecentPrioritizationFees();
  expect(fees).toHaveLength(150);
  const usdc = new PublicKey('EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v');
  expect((await connection.getParsedAccountInfo(usdc)).value?.data).toMatchObject({
    ...{ program: 'spl-token', parsed: { type: 'mint', info: { decimals: 6, supply: '0' } } },
  });
});
