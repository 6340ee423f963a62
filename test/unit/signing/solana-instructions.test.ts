import { AccountRole, address, type Instruction } from '@solana/kit';
import {
  AddressLookupTableAccount,
  PublicKey,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import * as system from '@solana-program/system';
import * as token from '@solana-program/token';
import { describe, expect, test } from 'vitest';
import {
  decodeSolanaInstructions,
  type SolanaInstruction,
} from '../../../src/engine/signing/solana/instructions.ts';
import { decodeSolanaTransaction } from '../../../src/engine/signing/solana/wire.ts';

const account = (fill: number) => new PublicKey(new Uint8Array(32).fill(fill)).toBase58();
const [payer, other, third, fourth] = [account(1), account(2), account(3), account(4)].map((text) =>
  address(text),
);
const signer = { address: payer, signTransactions: async () => [] } as never;
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const token2022Program = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';

/** An instruction of the generated clients as web3.js takes it. */
function toWeb3(instruction: Instruction): TransactionInstruction {
  return new TransactionInstruction({
    programId: new PublicKey(instruction.programAddress),
    keys: (instruction.accounts ?? []).map(({ address: key, role }) => ({
      pubkey: new PublicKey(key),
      isSigner: role >= AccountRole.READONLY_SIGNER,
      isWritable: role === AccountRole.WRITABLE || role === AccountRole.WRITABLE_SIGNER,
    })),
    data: Buffer.from(instruction.data ?? new Uint8Array()),
  });
}

function decode(...instructions: TransactionInstruction[]): readonly SolanaInstruction[] {
  const transaction = new Transaction({
    feePayer: new PublicKey(payer as string),
    recentBlockhash: account(9),
  });
  transaction.add(...instructions);
  return decodeSolanaInstructions(
    decodeSolanaTransaction(transaction.serialize({ requireAllSignatures: false })),
  );
}

const amount = 2n ** 63n + 5n;
const mint = third as never;
const cases: [string, Instruction, Record<string, string | bigint>][] = [
  [
    'Transfer',
    system.getTransferSolInstruction({ source: signer, destination: other as never, amount }),
    { from: payer as string, to: other as string, lamports: amount },
  ],
  [
    'Transfer',
    token.getTransferInstruction({
      source: other as never,
      destination: third as never,
      authority: fourth as never,
      amount,
    }),
    { source: other as string, destination: third as string, authority: fourth as string, amount },
  ],
  [
    'TransferChecked',
    token.getTransferCheckedInstruction({
      source: other as never,
      mint,
      destination: payer as never,
      authority: fourth as never,
      amount,
      decimals: 6,
    }),
    {
      source: other as string,
      mint: third as string,
      destination: payer as string,
      authority: fourth as string,
      amount,
      decimals: 6n,
    },
  ],
  [
    'Burn',
    token.getBurnInstruction({ account: other as never, mint, authority: fourth as never, amount }),
    { account: other as string, mint: third as string, authority: fourth as string, amount },
  ],
  [
    'MintTo',
    token.getMintToInstruction({ mint, token: other as never, mintAuthority: fourth as never, amount }),
    { mint: third as string, account: other as string, authority: fourth as string, amount },
  ],
  [
    'CloseAccount',
    token.getCloseAccountInstruction({
      account: other as never,
      destination: third as never,
      owner: fourth as never,
    }),
    { account: other as string, destination: third as string, authority: fourth as string },
  ],
  [
    'InitializeAccount3',
    token.getInitializeAccount3Instruction({ account: other as never, mint, owner: fourth as never }),
    { account: other as string, mint: third as string, owner: fourth as string },
  ],
];

describe('instructions that the generated clients build', () => {
  test.each(cases)('%s is read with its fields', (instructionName, instruction, fields) => {
    const program = instruction.programAddress === tokenProgram ? 'token' : 'system';
    const expected = { programId: instruction.programAddress, program, instructionName, fields };
    expect(decode(toWeb3(instruction))).toEqual([expected]);
    if (program === 'system') return;
    const on2022 = toWeb3({ ...instruction, programAddress: address(token2022Program) });
    expect(decode(on2022)).toEqual([{ ...expected, programId: token2022Program }]);
  });

  test('every discriminator has the name from the generated clients', () => {
    const namesOf = (clients: Record<string, unknown>, prefix: RegExp) =>
      Object.entries(clients)
        .filter(([name]) => prefix.test(name))
        .map(([name, discriminator]) => ({
          name: name
            .replace('_DISCRIMINATOR', '')
            .toLowerCase()
            .replaceAll('_', '')
            .replace('transfersol', 'transfer'),
          discriminator: discriminator as number,
        }));
    const systemNames = namesOf(system, /_DISCRIMINATOR$/);
    const tokenNames = namesOf(token, /^(?!CREATE_ASSOCIATED|RECOVER_NESTED).*_DISCRIMINATOR$/);
    expect([systemNames.length, tokenNames.length]).toEqual([14, tokenNames.length]);
    expect(tokenNames.length).toBeGreaterThanOrEqual(25);
    for (const { name, discriminator } of systemNames) {
      // Only Transfer's data is read beyond the discriminator.
      const data = Buffer.alloc(name === 'transfer' ? 12 : 4);
      data.writeUInt32LE(discriminator);
      const keys = [payer, other].map((key) => ({
        pubkey: new PublicKey(key as string),
        isSigner: false,
        isWritable: true,
      }));
      const [read] = decode(
        new TransactionInstruction({ programId: new PublicKey(new Uint8Array(32)), keys, data }),
      );
      expect(read?.instructionName?.toLowerCase()).toBe(name);
    }
    const withData = ['transfer', 'transferchecked', 'burn', 'mintto', 'initializeaccount3', 'closeaccount'];
    for (const { name, discriminator } of tokenNames.filter((entry) => !withData.includes(entry.name))) {
      const [read] = decode(
        new TransactionInstruction({
          programId: new PublicKey(tokenProgram),
          keys: [],
          data: Buffer.of(discriminator),
        }),
      );
      // Instructions of later program versions have no name: a batch, for example, contains other instructions.
      expect(read?.instructionName?.toLowerCase()).toBe(discriminator <= 24 ? name : undefined);
    }
  });
});

describe('unrecognized instructions', () => {
  const transfer = toWeb3(cases[0]?.[1] as Instruction);

  test.each([
    [
      'with more data than its layout',
      Buffer.concat([transfer.data, Buffer.alloc(1)]),
      'Transfer with other data or accounts',
    ],
    ['with less data than its layout', transfer.data.subarray(0, 11), 'Transfer with other data or accounts'],
    ['with an unknown discriminator', Buffer.of(99, 0, 0, 0), '99'],
    ['without a discriminator', Buffer.alloc(0), undefined],
  ])('an instruction %s has no name', (_what, data, unread) => {
    const [read] = decode(new TransactionInstruction({ ...transfer, data: Buffer.from(data) }));
    expect(read).toEqual({
      programId: account(0),
      program: 'system',
      instructionName: undefined,
      fields: undefined,
      unread,
    });
  });

  test('an instruction with too few accounts has no name', () => {
    const [read] = decode(new TransactionInstruction({ ...transfer, keys: transfer.keys.slice(0, 1) }));
    expect(read?.instructionName).toBeUndefined();
  });

  test('an instruction of another program has only its program id', () => {
    const programId = new PublicKey(account(7));
    expect(decode(new TransactionInstruction({ programId, keys: [], data: Buffer.of(3) }))).toEqual([
      { programId: programId.toBase58(), program: 'other', instructionName: undefined, fields: undefined },
    ]);
  });

  test('a field is unknown if its account comes from a lookup table, the others are known', () => {
    const table = new AddressLookupTableAccount({
      key: new PublicKey(account(8)),
      state: {
        deactivationSlot: 0n,
        lastExtendedSlot: 0,
        lastExtendedSlotStartIndex: 0,
        addresses: [new PublicKey(other as string)],
      },
    });
    const message = new TransactionMessage({
      payerKey: new PublicKey(payer as string),
      recentBlockhash: account(9),
      instructions: [transfer],
    }).compileToV0Message([table]);
    expect(message.addressTableLookups).toHaveLength(1);
    const decoded = decodeSolanaTransaction(new VersionedTransaction(message).serialize());
    expect(decodeSolanaInstructions(decoded)).toEqual([
      {
        programId: account(0),
        program: 'system',
        instructionName: 'Transfer',
        fields: { from: payer, to: undefined, lamports: amount },
      },
    ]);
  });
});
