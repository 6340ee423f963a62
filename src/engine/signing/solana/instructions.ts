import { type ByteReader, createByteReader } from '../../crypto/byte-reader.ts';
import { bytesToBase58 } from '../../crypto/encoding.ts';
import type { CompiledInstruction, SolanaTransaction } from './wire.ts';

/** The value of a field: an address, or an amount in lamports or token base units. */
type InstructionField = string | bigint;

/** One instruction, decoded into the form that policies evaluate. */
export interface SolanaInstruction {
  /** Base58. */
  readonly programId: string;
  /** `token` covers the token program and Token-2022. */
  readonly program: 'system' | 'token' | 'other';
  /** The name that policies use. Undefined for other programs and for unknown instructions. */
  readonly instructionName: string | undefined;
  /** Describes the instruction if its program is known but rules cannot read it. */
  readonly unread?: string | undefined;
  /**
   * The instruction's named fields, if its layout is known. A field is undefined if its account comes from an address
   * lookup table, whose content is not part of the transaction.
   */
  readonly fields: Readonly<Record<string, InstructionField | undefined>> | undefined;
}

interface Layout {
  readonly name: string;
  /** Names the leading accounts. */
  readonly accounts?: readonly string[] | undefined;
  /** Reads the data after the discriminator. */
  readonly data?: (reader: ByteReader) => Readonly<Record<string, InstructionField>> | undefined;
}

const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const TOKEN_PROGRAMS = new Set([
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
]);

const amount = (reader: ByteReader) => ({ amount: reader.u64() });

// The layouts of the system program, by discriminator. Source: solana-program system_instruction.rs
const SYSTEM_LAYOUTS: readonly Layout[] = [
  { name: 'CreateAccount' },
  { name: 'Assign' },
  { name: 'Transfer', accounts: ['from', 'to'], data: (reader) => ({ lamports: reader.u64() }) },
  { name: 'CreateAccountWithSeed' },
  { name: 'AdvanceNonceAccount' },
  { name: 'WithdrawNonceAccount' },
  { name: 'InitializeNonceAccount' },
  { name: 'AuthorizeNonceAccount' },
  { name: 'Allocate' },
  { name: 'AllocateWithSeed' },
  { name: 'AssignWithSeed' },
  { name: 'TransferWithSeed' },
  { name: 'UpgradeNonceAccount' },
  { name: 'CreateAccountAllowPrefund' },
];

// The layouts of the token program, by discriminator. Source: spl-token instruction.rs
const TOKEN_LAYOUTS: readonly Layout[] = [
  { name: 'InitializeMint' },
  { name: 'InitializeAccount' },
  { name: 'InitializeMultisig' },
  { name: 'Transfer', accounts: ['source', 'destination', 'authority'], data: amount },
  { name: 'Approve' },
  { name: 'Revoke' },
  { name: 'SetAuthority' },
  { name: 'MintTo', accounts: ['mint', 'account', 'authority'], data: amount },
  { name: 'Burn', accounts: ['account', 'mint', 'authority'], data: amount },
  { name: 'CloseAccount', accounts: ['account', 'destination', 'authority'], data: () => ({}) },
  { name: 'FreezeAccount' },
  { name: 'ThawAccount' },
  {
    name: 'TransferChecked',
    accounts: ['source', 'mint', 'destination', 'authority'],
    data: (reader) => ({ amount: reader.u64(), decimals: BigInt(reader.u8()) }),
  },
  { name: 'ApproveChecked' },
  { name: 'MintToChecked' },
  { name: 'BurnChecked' },
  { name: 'InitializeAccount2' },
  { name: 'SyncNative' },
  {
    name: 'InitializeAccount3',
    accounts: ['account', 'mint'],
    data: (reader) => ({ owner: bytesToBase58(reader.bytes(32)) }),
  },
  { name: 'InitializeMultisig2' },
  { name: 'InitializeMint2' },
  { name: 'GetAccountDataSize' },
  { name: 'InitializeImmutableOwner' },
  { name: 'AmountToUiAmount' },
  { name: 'UiAmountToAmount' },
];

/**
 * Instructions of the token program that rules cannot evaluate, because they move lamports or contain other
 * instructions. They have no names, so a DENY on the fields of another instruction also denies them. Source: p-token,
 * pinocchio-interface.
 */
export const unreadTokenInstructions: Readonly<Record<number, string>> = {
  38: 'WithdrawExcessLamports',
  45: 'UnwrapLamports',
  255: 'Batch',
};

export const solanaInstructionNames: Readonly<Record<'system' | 'token', readonly string[]>> = {
  system: SYSTEM_LAYOUTS.map(({ name }) => name),
  token: TOKEN_LAYOUTS.map(({ name }) => name),
};

/** Decodes every instruction in order. An instruction whose data does not match its layout exactly has no name. */
export function decodeSolanaInstructions(transaction: SolanaTransaction): readonly SolanaInstruction[] {
  return transaction.instructions.map((instruction) => decodeInstruction(transaction, instruction));
}

function decodeInstruction(transaction: SolanaTransaction, compiled: CompiledInstruction): SolanaInstruction {
  const programKey = transaction.staticKeys[compiled.programIndex];
  const programId = bytesToBase58(programKey ?? new Uint8Array());
  const program = programOf(programId);
  const layout = program === 'other' ? undefined : layoutOf(program, compiled.data);
  if (layout === undefined) {
    const unread = unreadOf(program, compiled.data);
    return { programId, program, instructionName: undefined, unread, fields: undefined };
  }
  if (layout.data === undefined) return { programId, program, instructionName: layout.name, fields: {} };
  const data = readData(program === 'system' ? 4 : 1, compiled.data, layout.data);
  const accounts = layout.accounts ?? [];
  if (data === undefined || compiled.accountIndexes.length < accounts.length) {
    const unread = `${layout.name} with other data or accounts`;
    return { programId, program, instructionName: undefined, unread, fields: undefined };
  }
  const addresses = namedAddresses(transaction, compiled, accounts);
  return {
    programId,
    program,
    instructionName: layout.name,
    fields: { ...addresses, ...data },
  };
}

function programOf(programId: string): SolanaInstruction['program'] {
  if (programId === SYSTEM_PROGRAM) return 'system';
  return TOKEN_PROGRAMS.has(programId) ? 'token' : 'other';
}

function unreadOf(program: SolanaInstruction['program'], data: Uint8Array): string | undefined {
  const [first] = data;
  if (program === 'other' || first === undefined) return undefined;
  if (program === 'token') return [first, unreadTokenInstructions[first]].filter(Boolean).join(', ');
  return data.length < 4 ? undefined : String(createByteReader(data).u32());
}

// The discriminator is u32 little-endian in the system program and u8 in the token program.
function layoutOf(program: 'system' | 'token', data: Uint8Array): Layout | undefined {
  if (program === 'token') return TOKEN_LAYOUTS[data[0] ?? -1];
  return data.length < 4 ? undefined : SYSTEM_LAYOUTS[createByteReader(data).u32()];
}

function readData(
  skipped: number,
  data: Uint8Array,
  read: NonNullable<Layout['data']>,
): Readonly<Record<string, InstructionField>> | undefined {
  const reader = createByteReader(data.subarray(skipped));
  try {
    const fields = read(reader);
    reader.end();
    return fields;
  } catch {
    return undefined;
  }
}

function namedAddresses(
  transaction: SolanaTransaction,
  compiled: CompiledInstruction,
  names: readonly string[],
): Record<string, string | undefined> {
  const addresses: Record<string, string | undefined> = {};
  for (const [position, name] of names.entries()) {
    const key = transaction.staticKeys[compiled.accountIndexes[position] ?? -1];
    addresses[name] = key === undefined ? undefined : bytesToBase58(key);
  }
  return addresses;
}
