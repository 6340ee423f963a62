import { base58ToBytes, concatBytes } from '../../crypto/encoding.ts';
import { ASSOCIATED_TOKEN_PROGRAM, associatedTokenAddress } from './associated-token.ts';

const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const SIGNATURE_BYTES = 64;
const BLOCKHASH_BYTES = 32;

// Source: solana-program system_instruction.rs
const SYSTEM_TRANSFER = 2;
// Source: spl-token instruction.rs
const TRANSFER_CHECKED = 12;
// Source: spl-associated-token-account instruction.rs
const CREATE_IDEMPOTENT = 1;

/** A token as its mint tells of it. */
export interface TokenMint {
  readonly address: string;
  readonly decimals: number;
  /** The program that the mint belongs to. */
  readonly tokenProgram: string;
}

export interface SolanaTransfer {
  /** Pays and signs, base58. */
  readonly from: string;
  /** A wallet, never a token account. */
  readonly to: string;
  /** Undefined: lamports. */
  readonly mint: TokenMint | undefined;
  /** In base units, below 2^64. */
  readonly rawAmount: bigint;
}

interface Account {
  readonly address: string;
  readonly isWritable?: boolean;
}

interface Instruction {
  readonly program: string;
  readonly accounts: readonly Account[];
  readonly data: Uint8Array;
}

/**
 * The wire bytes of an unsigned legacy transaction that moves one asset from one wallet to another; the blockhash is
 * all zeros, to be filled in. A token arrives in the recipient's associated token account, which the sender pays for
 * when it does not exist.
 *
 * wire = signatures || header || keys || blockhash || instructions. Source: Solana docs, transaction structure.
 */
export function encodeSolanaTransfer(transfer: SolanaTransfer): Uint8Array {
  const instructions = transfer.mint === undefined ? [lamports(transfer)] : tokens(transfer, transfer.mint);
  const writable = new Set<string>();
  const readonly = new Set<string>();
  for (const { accounts } of instructions) {
    for (const { address, isWritable } of accounts) if (isWritable === true) writable.add(address);
  }
  writable.delete(transfer.from);
  for (const { program, accounts } of instructions) {
    for (const address of [...accounts.map((account) => account.address), program]) {
      if (address !== transfer.from && !writable.has(address)) readonly.add(address);
    }
  }
  const keys = [transfer.from, ...writable, ...readonly];
  const indexOf = (address: string): number => keys.indexOf(address);
  return concatBytes(
    list([new Uint8Array(SIGNATURE_BYTES)]),
    // One signer, who pays and is writable; then how many of the others are read-only.
    Uint8Array.of(1, 0, readonly.size),
    list(keys.map(base58ToBytes)),
    new Uint8Array(BLOCKHASH_BYTES),
    list(
      instructions.map(({ program, accounts, data }) =>
        concatBytes(
          Uint8Array.of(indexOf(program)),
          list(accounts.map(({ address }) => Uint8Array.of(indexOf(address)))),
          list([...data].map((byte) => Uint8Array.of(byte))),
        ),
      ),
    ),
  );
}

function lamports({ from, to, rawAmount }: SolanaTransfer): Instruction {
  return {
    program: SYSTEM_PROGRAM,
    accounts: [
      { address: from, isWritable: true },
      { address: to, isWritable: true },
    ],
    data: concatBytes(littleEndian(BigInt(SYSTEM_TRANSFER), 4), littleEndian(rawAmount, 8)),
  };
}

function tokens({ from, to, rawAmount }: SolanaTransfer, mint: TokenMint): Instruction[] {
  const { address, decimals, tokenProgram } = mint;
  const source = associatedTokenAddress(from, address, tokenProgram);
  const destination = associatedTokenAddress(to, address, tokenProgram);
  const makeAccount: Instruction = {
    program: ASSOCIATED_TOKEN_PROGRAM,
    accounts: [
      { address: from, isWritable: true },
      { address: destination, isWritable: true },
      { address: to },
      { address },
      { address: SYSTEM_PROGRAM },
      { address: tokenProgram },
    ],
    data: Uint8Array.of(CREATE_IDEMPOTENT),
  };
  const move: Instruction = {
    program: tokenProgram,
    accounts: [
      { address: source, isWritable: true },
      { address },
      { address: destination, isWritable: true },
      { address: from },
    ],
    data: concatBytes(Uint8Array.of(TRANSFER_CHECKED), littleEndian(rawAmount, 8), Uint8Array.of(decimals)),
  };
  return [makeAccount, move];
}

/** compact-u16 length || items; no list of ours has 128 items. */
function list(items: readonly Uint8Array[]): Uint8Array {
  return concatBytes(Uint8Array.of(items.length), ...items);
}

function littleEndian(value: bigint, bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, index) => Number((value >> BigInt(8 * index)) & 0xffn));
}
