import { base58ToBytes, concatBytes, littleEndian } from '../../crypto/encoding.ts';
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

/** The properties of a token's mint that a transfer needs. */
export interface TokenMint {
  readonly address: string;
  readonly decimals: number;
  /** The token program that owns the mint. */
  readonly tokenProgram: string;
}

export interface SolanaTransfer {
  /** Fee payer and signer in base58. */
  readonly from: string;
  /** A wallet address, not a token account. */
  readonly to: string;
  /** Undefined for a transfer of lamports. */
  readonly mint: TokenMint | undefined;
  /** In base units, below 2^64. */
  readonly rawAmount: bigint;
}

interface Account {
  readonly address: string;
  readonly isWritable?: boolean;
}

/** An instruction that only the fee payer signs. */
export interface Instruction {
  readonly program: string;
  readonly accounts: readonly Account[];
  readonly data: Uint8Array;
}

/**
 * Encodes an unsigned legacy transaction that transfers one asset between wallets. The blockhash is all zeros; the
 * caller fills it in. Tokens go to the recipient's associated token account. If it does not exist, the transaction
 * creates it, and the sender pays for that.
 *
 * wire = signatures || header || keys || blockhash || instructions. Source: Solana docs, transaction structure.
 */
export function encodeSolanaTransfer(transfer: SolanaTransfer): Uint8Array {
  const instructions = transfer.mint === undefined ? [lamports(transfer)] : tokens(transfer, transfer.mint);
  return encodeSolanaInstructions(transfer.from, instructions);
}

/** Encodes an unsigned legacy transaction with these instructions. Its blockhash is all zeros. */
export function encodeSolanaInstructions(from: string, instructions: readonly Instruction[]): Uint8Array {
  const writable = new Set<string>();
  const readonly = new Set<string>();
  for (const { accounts } of instructions) {
    for (const { address, isWritable } of accounts) if (isWritable === true) writable.add(address);
  }
  writable.delete(from);
  for (const { program, accounts } of instructions) {
    for (const address of [...accounts.map((account) => account.address), program]) {
      if (address !== from && !writable.has(address)) readonly.add(address);
    }
  }
  const keys = [from, ...writable, ...readonly];
  const indexOf = (address: string): number => keys.indexOf(address);
  return concatBytes(
    list([new Uint8Array(SIGNATURE_BYTES)]),
    // The header: one signer (the writable fee payer), no read-only signers, the number of other read-only accounts.
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
  const createAccount: Instruction = {
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
  const transfer: Instruction = {
    program: tokenProgram,
    accounts: [
      { address: source, isWritable: true },
      { address },
      { address: destination, isWritable: true },
      { address: from },
    ],
    data: concatBytes(Uint8Array.of(TRANSFER_CHECKED), littleEndian(rawAmount, 8), Uint8Array.of(decimals)),
  };
  return [createAccount, transfer];
}

/** Encodes compact-u16 length || items. Takes fewer than 128 items, so the length is one byte. */
function list(items: readonly Uint8Array[]): Uint8Array {
  return concatBytes(Uint8Array.of(items.length), ...items);
}
