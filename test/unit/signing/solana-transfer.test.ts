import { type Address, createNoopSigner, type Instruction } from '@solana/kit';
import { Keypair, PublicKey, SystemProgram, Transaction, TransactionInstruction } from '@solana/web3.js';
import {
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeSolanaTransfer } from '../../../src/engine/signing/solana/encode-transfer.ts';
import { decodeSolanaInstructions } from '../../../src/engine/signing/solana/instructions.ts';
import { decodeSolanaTransaction } from '../../../src/engine/signing/solana/wire.ts';

const from = Keypair.fromSeed(new Uint8Array(32).fill(1)).publicKey.toBase58();
const to = Keypair.fromSeed(new Uint8Array(32).fill(2)).publicKey.toBase58();
const usdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const token2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
const anyAmount = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

/** What web3.js reads out of wire bytes. */
function read(wire: Uint8Array): Transaction {
  const transaction = Transaction.from(wire);
  expect(transaction.feePayer?.toBase58()).toBe(from);
  expect(transaction.recentBlockhash).toBe('1'.repeat(32));
  return transaction;
}

/** An instruction of the official clients as web3.js writes it. */
function asWeb3({ programAddress, accounts = [], data }: Instruction): TransactionInstruction {
  return new TransactionInstruction({
    programId: new PublicKey(programAddress),
    keys: accounts.map(({ address, role }) => ({
      pubkey: new PublicKey(address),
      // AccountRole of kit: 1 is writable, 2 signs.
      isWritable: (role & 1) === 1,
      isSigner: (role & 2) === 2,
    })),
    data: Buffer.from(data ?? []),
  });
}

/** The message that web3.js compiles from instructions. */
function compiled(instructions: readonly TransactionInstruction[]): Buffer {
  const transaction = new Transaction({ feePayer: new PublicKey(from), recentBlockhash: '1'.repeat(32) });
  return transaction.add(...instructions).serializeMessage();
}

test('lamports are transferred like by the official client', () => {
  fc.assert(
    fc.property(anyAmount, (lamports) => {
      const wire = encodeSolanaTransfer({ from, to, mint: undefined, rawAmount: lamports });
      const expected = SystemProgram.transfer({
        fromPubkey: new PublicKey(from),
        toPubkey: new PublicKey(to),
        lamports,
      });
      expect(read(wire).serializeMessage()).toEqual(compiled([expected]));
    }),
  );
});

test.each([TOKEN_PROGRAM_ADDRESS, token2022])(
  'tokens of %s are transferred to the associated account, which is created if necessary',
  async (program) => {
    const tokenProgram = program as Address;
    const owner = (address: string) =>
      findAssociatedTokenPda({ mint: usdc as Address, owner: address as Address, tokenProgram });
    const [[source], [destination]] = [await owner(from), await owner(to)];
    const payer = createNoopSigner(from as Address);
    for (const rawAmount of [1n, 1_500_000n, 2n ** 64n - 1n]) {
      const wire = encodeSolanaTransfer({
        from,
        to,
        mint: { address: usdc, decimals: 6, tokenProgram },
        rawAmount,
      });
      const expected = [
        getCreateAssociatedTokenIdempotentInstruction({
          payer,
          ata: destination,
          owner: to as Address,
          mint: usdc as Address,
          tokenProgram,
        }),
        getTransferCheckedInstruction(
          { source, mint: usdc as Address, destination, authority: payer, amount: rawAmount, decimals: 6 },
          { programAddress: tokenProgram },
        ),
      ];
      const seen = read(wire).instructions.map(({ programId, data, keys }) => ({
        program: programId.toBase58(),
        data: data.toString('hex'),
        keys: keys.map(({ pubkey }) => pubkey.toBase58()),
      }));
      expect(seen).toEqual(
        expected.map(asWeb3).map(({ programId, data, keys }) => ({
          program: programId.toBase58(),
          data: data.toString('hex'),
          keys: keys.map(({ pubkey }) => pubkey.toBase58()),
        })),
      );
    }
  },
);

test('our own decoder, which policies use, sees the same', () => {
  const wire = encodeSolanaTransfer({
    from,
    to,
    mint: { address: usdc, decimals: 6, tokenProgram: TOKEN_PROGRAM_ADDRESS },
    rawAmount: 7n,
  });
  const [made, moved] = decodeSolanaInstructions(decodeSolanaTransaction(wire));
  expect(made).toMatchObject({ program: 'other', programId: 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL' });
  expect(moved).toMatchObject({
    instructionName: 'TransferChecked',
    fields: { mint: usdc, authority: from, amount: 7n, decimals: 6n },
  });
});

test('a transfer to oneself is one account, written once', () => {
  const wire = encodeSolanaTransfer({ from, to: from, mint: undefined, rawAmount: 1n });
  expect(read(wire).instructions[0]?.keys.map(({ pubkey }) => pubkey.toBase58())).toEqual([from, from]);
});
