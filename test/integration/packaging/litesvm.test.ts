import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Keypair, PublicKey, Transaction, TransactionInstruction } from '@solana/web3.js';
import { expect, test } from 'vitest';
import { serveCustos } from '../../support/run-custos.ts';

// The published program, in the folder of a project that has the package litesvm, or a broken one, or none.

const installed = join(import.meta.dirname, '..', '..', 'node_modules', 'litesvm');
/** A program that only the real virtual machine has. */
const lookupTables = new PublicKey('AddressLookupTab1e1111111111111111111111111');

/** The preflight of a transaction that calls the program without data. */
async function callInProject(
  prepare: (modules: string) => void,
): Promise<{ message: string; logs: string[] }> {
  const cwd = mkdtempSync(join(tmpdir(), 'custos-litesvm-'));
  mkdirSync(join(cwd, 'node_modules'));
  prepare(join(cwd, 'node_modules'));
  try {
    await using custos = await serveCustos(['sandbox', '--confirm-after', '0'], { cwd });
    const ask = async (method: string, ...params: unknown[]) => {
      const { body } = await custos.call<{
        result?: { value: { blockhash: string } };
        error?: { message: string; data: { logs: string[] } };
      }>('POST', '/_sandbox/rpc/solana', { jsonrpc: '2.0', id: 1, method, params });
      return body;
    };
    const payer = Keypair.generate();
    await ask('requestAirdrop', payer.publicKey.toBase58(), 10 ** 9);
    const { result } = await ask('getLatestBlockhash');
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      recentBlockhash: result!.value.blockhash,
    });
    transaction.add(new TransactionInstruction({ programId: lookupTables, keys: [] })).sign(payer);
    const wire = transaction.serialize().toString('base64');
    const { error } = await ask('sendTransaction', wire, { encoding: 'base64' });
    return { message: error!.message, logs: error!.data.logs };
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

test('a project with litesvm runs every program', async () => {
  const { message, logs } = await callInProject((modules) =>
    symlinkSync(installed, join(modules, 'litesvm')),
  );
  expect(message).toBe(
    'Transaction simulation failed: Error processing Instruction 0: invalid instruction data',
  );
  expect(logs[0]).toBe(`Program ${lookupTables.toBase58()} invoke [1]`);
});

test('a project without litesvm is told to install it', async () => {
  const { message, logs } = await callInProject(() => undefined);
  expect(message).toBe('Transaction simulation failed: Attempt to load a program that does not exist');
  expect(logs).toEqual([expect.stringMatching(/^without the package litesvm, only .* npm install litesvm$/)]);
});

test('a litesvm that cannot be loaded is named, and the usual programs run', async () => {
  const { message, logs } = await callInProject((modules) => {
    mkdirSync(join(modules, 'litesvm'));
    writeFileSync(join(modules, 'litesvm', 'index.js'), 'throw new Error("no binary for this system")');
  });
  expect(message).toBe('Transaction simulation failed: Attempt to load a program that does not exist');
  expect(logs).toEqual(['the installed package litesvm cannot be loaded: no binary for this system']);
});
