import { createHash } from 'node:crypto';
import {
  type AccountMeta,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
} from '@solana/web3.js';
import * as litesvm from 'litesvm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import type { LiteSvmModule } from '../../../src/sandbox/simulated/chains/solana/litesvm.ts';

// With the package litesvm, programs are deployed and upgraded as on a real chain. The bytecode is that of the memo
// program, which the package brings.

const caip2 = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const loader = new PublicKey('BPFLoaderUpgradeab1e11111111111111111111111');
const sysvars = [
  'SysvarRent111111111111111111111111111111111',
  'SysvarC1ock11111111111111111111111111111111',
];
const memo = codeOf('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');
/** Another program: it says `Note` instead of `Memo`. */
const note = Buffer.from(memo.toString('latin1').replace('Memo', 'Note'), 'latin1');

function codeOf(program: string): Buffer {
  const account = new litesvm.LiteSVM().getAccount(program as never);
  if (!account.exists) throw new Error(`expected ${program}`);
  return Buffer.from(account.data);
}

const keypair = (name: string): Keypair => Keypair.fromSeed(createHash('sha256').update(name).digest());
const payer = keypair('payer');
const program = keypair('program');
const [programData] = PublicKey.findProgramAddressSync([program.publicKey.toBuffer()], loader);

let chains: SimulatedChains;
let isBroken = false;

/** A machine whose native code fails on demand, after it has changed accounts. */
class FailingLiteSvm extends litesvm.LiteSVM {
  override sendTransaction(...input: Parameters<litesvm.LiteSVM['sendTransaction']>) {
    const result = super.sendTransaction(...input);
    if (isBroken) throw new Error('native failure');
    return result;
  }
}

beforeAll(async () => {
  chains = openSimulatedChains({
    ...{ file: ':memory:', confirmAfterMs: 0 },
    clock: adjustableClock({ startMs: Date.UTC(2026, 0, 1), frozen: true }),
    liteSvm: async () => ({ ...litesvm, LiteSVM: FailingLiteSvm }) as unknown as LiteSvmModule,
  });
  await rpc('requestAirdrop', payer.publicKey.toBase58(), 10 ** 11);
});
afterAll(() => chains.close());

async function rpc<T>(method: string, ...params: unknown[]): Promise<T> {
  const caller = { signal: new AbortController().signal, isLate: () => false };
  const outcome = await chains.rpc(caip2, { method, params }, caller);
  if ('error' in outcome) throw new Error(`${outcome.error.message} ${JSON.stringify(outcome.error.data)}`);
  return outcome.result as T;
}

async function wireOf(signers: Keypair[], instructions: TransactionInstruction[]): Promise<string> {
  const { value } = await rpc<{ value: { blockhash: string } }>('getLatestBlockhash');
  const transaction = new Transaction({ feePayer: payer.publicKey, recentBlockhash: value.blockhash });
  transaction.add(...instructions).sign(payer, ...signers);
  return transaction.serialize().toString('base64');
}

async function send(signers: Keypair[], ...instructions: TransactionInstruction[]): Promise<string> {
  return rpc('sendTransaction', await wireOf(signers, instructions), { encoding: 'base64' });
}

async function simulate(...instructions: TransactionInstruction[]) {
  const wire = await wireOf([], instructions);
  const { value } = await rpc<{ value: { err: unknown; logs: string[] } }>('simulateTransaction', wire, {
    ...{ encoding: 'base64' },
  });
  return value;
}

const meta = (pubkey: PublicKey | string, flags = ''): AccountMeta => ({
  ...{ pubkey: new PublicKey(pubkey), isSigner: flags.includes('s'), isWritable: flags.includes('w') },
});
const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const call = (keys: AccountMeta[], ...data: Buffer[]): TransactionInstruction =>
  new TransactionInstruction({ programId: loader, keys, data: Buffer.concat(data) });
const say = (text: string): TransactionInstruction =>
  new TransactionInstruction({ programId: program.publicKey, keys: [], data: Buffer.from(text) });

/** Creates an account of the loader. */
const create = (account: Keypair, space: number): TransactionInstruction =>
  SystemProgram.createAccount({
    ...{ fromPubkey: payer.publicKey, newAccountPubkey: account.publicKey, programId: loader },
    ...{ lamports: (128 + space) * 6_960, space },
  });

/** Writes bytecode into a buffer account, in as many transactions as it takes. */
async function upload(name: string, code: Buffer): Promise<PublicKey> {
  const buffer = keypair(name);
  const authority = payer.publicKey;
  const begun = call([meta(buffer.publicKey, 'w'), meta(authority)], u32(0));
  await send([buffer], create(buffer, 37 + code.length), begun);
  for (let offset = 0; offset < code.length; offset += 900) {
    const part = code.subarray(offset, offset + 900);
    const keys = [meta(buffer.publicKey, 'w'), meta(authority, 's')];
    await send([], call(keys, u32(1), u32(offset), u64(part.length), part));
  }
  return buffer.publicKey;
}

const deploy = (buffer: PublicKey, space: number): TransactionInstruction =>
  call(
    [
      ...[
        meta(payer.publicKey, 'sw'),
        meta(programData, 'w'),
        meta(program.publicKey, 'w'),
        meta(buffer, 'w'),
      ],
      ...[
        ...sysvars.map((sysvar) => meta(sysvar)),
        meta(SystemProgram.programId),
        meta(payer.publicKey, 's'),
      ],
    ],
    ...[u32(2), u64(space)],
  );

const upgrade = (buffer: PublicKey): TransactionInstruction =>
  call(
    [
      ...[
        meta(programData, 'w'),
        meta(program.publicKey, 'w'),
        meta(buffer, 'w'),
        meta(payer.publicKey, 'w'),
      ],
      ...[...sysvars.map((sysvar) => meta(sysvar)), meta(payer.publicKey, 's')],
    ],
    u32(3),
  );

test('a program is deployed, called, upgraded and called again', async () => {
  expect((await simulate(say('too early'))).err).toBe('ProgramAccountNotFound');
  const buffer = await upload('first buffer', memo);
  const instructions = [create(program, 36), deploy(buffer, memo.length)];
  // A simulation leaves nothing behind.
  expect(
    await rpc('simulateTransaction', await wireOf([program], instructions), { encoding: 'base64' }),
  ).toMatchObject({ value: { err: null } });
  expect((await simulate(say('still too early'))).err).toBe('ProgramAccountNotFound');
  await send([program], ...instructions);
  expect((await simulate(say('hello'))).logs).toContain('Program log: Memo (len 5)');
  const signature = await send([], say('hello'));
  expect(await rpc('getTransaction', signature, { encoding: 'json', commitment: 'confirmed' })).toMatchObject(
    { meta: { err: null, logMessages: expect.arrayContaining(['Program log: hello']) } },
  );
  expect(await rpc('getAccountInfo', program.publicKey.toBase58(), { encoding: 'jsonParsed' })).toMatchObject(
    {
      value: {
        executable: true,
        data: {
          program: 'bpf-upgradeable-loader',
          parsed: { info: { programData: programData.toBase58() } },
        },
      },
    },
  );

  const second = await upload('second buffer', note);
  const upgraded = await wireOf([], [upgrade(second)]);
  expect(await rpc('simulateTransaction', upgraded, { encoding: 'base64' })).toMatchObject({
    value: { err: null },
  });
  // The code is still the first.
  expect((await simulate(say('hello'))).logs).toContain('Program log: Memo (len 5)');
  await send([], upgrade(second));
  expect((await simulate(say('hello'))).logs).toContain('Program log: Note (len 5)');
});

test('when the native module throws, its transaction fails and the chain goes on', async () => {
  const gift = () =>
    SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: keypair('heir').publicKey,
      lamports: 10 ** 9,
    });
  const heir = async () =>
    (await rpc<{ value: number }>('getBalance', keypair('heir').publicKey.toBase58())).value;
  isBroken = true;
  await expect(send([], gift())).rejects.toThrow(
    /^Transaction simulation failed: Error processing Instruction 0: Program failed to complete .*litesvm failed: native failure/,
  );
  expect((await simulate(gift())).err).toEqual({ InstructionError: [0, 'ProgramFailedToComplete'] });
  // Without a preflight it is included, and pays its fee.
  const options = { encoding: 'base64', skipPreflight: true };
  const signature = await rpc<string>('sendTransaction', await wireOf([], [gift()]), options);
  expect(await rpc('getTransaction', signature, { encoding: 'json', commitment: 'confirmed' })).toMatchObject(
    {
      meta: {
        ...{ err: { InstructionError: [0, 'ProgramFailedToComplete'] }, fee: 5_000 },
        logMessages: ['litesvm failed: native failure'],
      },
    },
  );
  expect(await heir()).toBe(0);
  isBroken = false;
  await send([], gift(), say('still here'));
  // What the failed machine had changed is not in the new one.
  expect(await heir()).toBe(10 ** 9);
});

test('what the programs moved is in the books', async () => {
  const [native] = await chains.books();
  const held = Object.values(native!.held).reduce((sum, amount) => sum + amount, 0n);
  expect(held).toBe(native!.given + native!.minted);
});
