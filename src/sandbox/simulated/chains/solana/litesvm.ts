import { createRequire } from 'node:module';
import { join } from 'node:path';
import { bytesToBase58, equalBytes } from '../../../../engine/crypto/encoding.ts';
import { decodeSolanaTransaction } from '../../../../engine/signing/solana/wire.ts';
import type { Log } from '../../../../ports/runtime.ts';
import { EMPTY_ACCOUNT, type SolanaAccount, UPGRADEABLE_LOADER } from './accounts.ts';
import {
  type InstructionError,
  instructionErrorNames,
  type TransactionError,
  transactionErrorNames,
} from './failures.ts';
import { LOOKUP_TABLE_PROGRAM, PRECOMPILES } from './plan.ts';
import type { Executor, InnerInstruction, Outcome, Task } from './runtime.ts';

/**
 * Runs transactions in Solana's real virtual machine, from the optional package `litesvm`. Passes it the accounts of
 * a transaction from the chain's store, and returns the changes. The virtual machine itself keeps no state that is
 * not in the store.
 */

/** The part of the package that is used. Its types are declared here, because the package need not be installed. */
export interface LiteSvmModule {
  readonly LiteSVM: new () => LiteSvm;
  readonly Clock: new (
    slot: bigint,
    epochStart: bigint,
    epoch: bigint,
    leaderScheduleEpoch: bigint,
    seconds: bigint,
  ) => object;
}

interface LiteSvm {
  withSigverify(isOn: boolean): LiteSvm;
  withBlockhashCheck(isOn: boolean): LiteSvm;
  withTransactionHistory(capacity: bigint): LiteSvm;
  getAccount(address: string): EncodedAccount | { readonly exists: false };
  setAccount(account: Omit<EncodedAccount, 'exists'>): void;
  setClock(clock: object): void;
  setSlotHashes(hashes: readonly { readonly slot: bigint; readonly hash: string }[]): void;
  sendTransaction(transaction: {
    readonly messageBytes: Uint8Array;
    readonly signatures: Readonly<Record<string, Uint8Array>>;
  }): Metadata | Failure;
}

interface EncodedAccount {
  readonly exists: true;
  readonly address: string;
  readonly lamports: bigint;
  readonly programAddress: string;
  readonly executable: boolean;
  readonly data: Uint8Array;
  readonly space: bigint;
}

interface Metadata {
  logs(): string[];
  computeUnitsConsumed(): bigint;
  innerInstructions(): {
    instruction(): { programIdIndex(): number; accounts(): Uint8Array; data(): Uint8Array };
    stackHeight(): number;
  }[][];
  returnData(): { programId(): Uint8Array; data(): Uint8Array };
}

interface Failure {
  err(): number | { readonly index?: number; readonly accountIndex?: number; err?(): unknown };
  meta(): Metadata;
}

/**
 * CHOICE: the virtual machine is replaced by a new one once it has loaded this many accounts or bytes of account
 * data.
 */
const MAX_ACCOUNTS = 20_000;
const MAX_BYTES = 256_000_000;
const MAX_REASON = 500;
const SLOTS_PER_EPOCH = 432_000n;
const SLOT_HASHES = 512;
const SLOT_HASHES_SYSVAR = 'SysvarS1otHashes111111111111111111111111111';
/** The size of a program account: its kind, then the address of its code. */
const PROGRAM_BYTES = 36;

interface LiteSvmOptions {
  /** Returns the hash of a block, for programs that read recent blockhashes. */
  readonly blockhashAt: (slot: number) => string;
  readonly log: Log | undefined;
}

/** Creates an executor for one chain. */
export function makeLiteSvmExecutor(
  { LiteSVM, Clock }: LiteSvmModule,
  { blockhashAt, log }: LiteSvmOptions,
): Executor {
  const make = (): LiteSvm =>
    new LiteSVM().withSigverify(false).withBlockhashCheck(false).withTransactionHistory(0n);
  /** Never changed. It shows which accounts exist in a new virtual machine. */
  const fresh = make();
  const native = new Map<string, boolean>();
  let svm = make();
  let known = new Map<string, SolanaAccount>();
  let bytes = 0;

  function isNative(address: string): boolean {
    const found = native.get(address) ?? fresh.getAccount(address).exists;
    if (native.size < MAX_ACCOUNTS) native.set(address, found);
    return found;
  }

  function put(address: string, account: SolanaAccount): void {
    const { lamports, owner, executable, data } = account;
    svm.setAccount({
      ...{ address, lamports, programAddress: owner, executable, data, space: BigInt(data.length) },
    });
    known.set(address, account);
    bytes += data.length;
  }

  /**
   * Copies an account into the virtual machine, unless it has the same account already. Returns whether it was copied.
   */
  function sync(address: string, account: SolanaAccount): boolean {
    if (isNative(address) || isSame(known.get(address) ?? EMPTY_ACCOUNT, account)) return false;
    put(address, account);
    return true;
  }

  function load({ resolved, account }: Task): void {
    const programs = new Map<string, SolanaAccount>();
    for (const { address } of resolved.accounts) {
      const found = account(address);
      if (found.executable) programs.set(address, found);
      else sync(address, found);
    }
    // Setting a program's account compiles the program, which needs the account with its code.
    for (const [address, program] of programs) {
      const isUpgradeable = program.owner === UPGRADEABLE_LOADER && program.data.length === PROGRAM_BYTES;
      const code = isUpgradeable ? bytesToBase58(program.data.subarray(4)) : undefined;
      const hasChanged = code !== undefined && sync(code, account(code));
      if (!sync(address, program) && hasChanged) put(address, program);
    }
  }

  function readBack(address: string): SolanaAccount {
    const found = svm.getAccount(address);
    if (!found.exists || found.lamports === 0n) return EMPTY_ACCOUNT;
    const { lamports, programAddress: owner, executable, data } = found;
    return { lamports, owner, executable, data };
  }

  function setTime({ slot, seconds, resolved }: Task): void {
    const epoch = BigInt(slot) / SLOTS_PER_EPOCH;
    svm.setClock(new Clock(BigInt(slot), BigInt(seconds), epoch, epoch + 1n, BigInt(seconds)));
    const readsHashes = resolved.accounts.some(
      ({ address }) => address === LOOKUP_TABLE_PROGRAM || address === SLOT_HASHES_SYSVAR,
    );
    if (!readsHashes) return;
    const count = Math.min(SLOT_HASHES, slot);
    svm.setSlotHashes(
      Array.from({ length: count }, (_, age) => ({
        ...{ slot: BigInt(slot - 1 - age), hash: blockhashAt(slot - 1 - age) },
      })),
    );
  }

  function replace(): void {
    svm = make();
    known = new Map();
    bytes = 0;
  }

  return {
    has: (program) => isNative(program) || PRECOMPILES.includes(program),
    run(task) {
      if (known.size > MAX_ACCOUNTS || bytes > MAX_BYTES) replace();
      let storeError: unknown;
      const account = (address: string): SolanaAccount => {
        try {
          return task.account(address);
        } catch (error) {
          storeError = error;
          throw error;
        }
      };
      try {
        return execute({ ...task, account });
      } catch (error) {
        if (storeError !== undefined && error === storeError) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        log?.warn({ error: reason }, 'litesvm failed; the transaction fails, and the machine is replaced');
        // The failure may have changed accounts in the virtual machine that did not change in the store.
        replace();
        return brokenBy(task, reason);
      }
    },
  };

  function execute(task: Task): Outcome {
    const { resolved, account, fee } = task;
    const addresses = resolved.accounts.map(({ address }) => address);
    const payer = addresses[0]!;
    load({
      ...task,
      account: (address) => (address === payer ? withLamports(account(address), fee) : account(address)),
    });
    setTime(task);
    const nativeBefore = new Map(
      addresses.filter(isNative).map((address) => [address, readBack(address).lamports] as const),
    );
    const result = svm.sendTransaction(messageOf(task.wire, addresses));
    const changed = new Map<string, SolanaAccount>();
    for (const { address, isWritable } of resolved.accounts) {
      if (!isWritable) continue;
      const after = readBack(address);
      const before = nativeBefore.get(address);
      if (before === undefined) {
        known.set(address, after);
        bytes += after.data.length;
        if (!isSame(account(address), after)) changed.set(address, after);
      } else if (after.lamports !== before) {
        // If an account exists in every new virtual machine, the chain stores only the lamports that were paid to it.
        changed.set(address, withLamports(account(address), after.lamports - before));
      }
    }
    return outcomeOf(task, result, changed);
  }
}

/**
 * Returns the outcome of a transaction during which the virtual machine failed.
 *
 * CHOICE: the transaction fails as if its program had been aborted, and the chain continues.
 */
function brokenBy({ units }: Task, reason: string): Outcome {
  return {
    error: { InstructionError: [0, 'ProgramFailedToComplete'] },
    ...{ logs: [`litesvm failed: ${reason.slice(0, MAX_REASON)}`], units, inner: [], returned: null },
    changed: new Map(),
  };
}

function withLamports(account: SolanaAccount, more: bigint): SolanaAccount {
  return { ...account, lamports: account.lamports + more };
}

function isSame(one: SolanaAccount, other: SolanaAccount): boolean {
  return (
    one.lamports === other.lamports &&
    one.owner === other.owner &&
    one.executable === other.executable &&
    equalBytes(one.data, other.data)
  );
}

function messageOf(wire: Uint8Array, addresses: readonly string[]) {
  const { message, signatures } = decodeSolanaTransaction(wire);
  const signed = signatures.map((signature, index) => [addresses[index]!, signature] as const);
  return { messageBytes: message, signatures: Object.fromEntries(signed) };
}

function outcomeOf(
  { resolved }: Task,
  result: Metadata | Failure,
  changed: ReadonlyMap<string, SolanaAccount>,
): Outcome {
  const isFailure = 'err' in result;
  const meta = isFailure ? result.meta() : result;
  const { accounts } = resolved;
  const inner = meta.innerInstructions().map((instructions) =>
    instructions.map((each): InnerInstruction => {
      const instruction = each.instruction();
      return {
        program: accounts[instruction.programIdIndex()]!.address,
        accounts: [...instruction.accounts()].map((index) => accounts[index]!),
        ...{ data: instruction.data(), height: each.stackHeight() },
      };
    }),
  );
  const returned = meta.returnData();
  const data = returned.data();
  return {
    error: isFailure ? errorOf(result) : null,
    logs: meta.logs(),
    units: meta.computeUnitsConsumed(),
    inner,
    returned: data.length === 0 ? null : { program: bytesToBase58(returned.programId()), data },
    changed: isFailure ? new Map() : changed,
  };
}

function errorOf(failure: Failure): TransactionError {
  const error = failure.err();
  if (typeof error === 'number') return transactionErrorNames[error] ?? `Error${error}`;
  const { index = 0, accountIndex } = error;
  if (accountIndex !== undefined) return { InsufficientFundsForRent: { account_index: accountIndex } };
  if (error.err === undefined) return { DuplicateInstruction: index };
  return { InstructionError: [index, instructionErrorOf(error.err())] };
}

function instructionErrorOf(cause: unknown): InstructionError {
  if (typeof cause === 'number') return instructionErrorNames[cause] ?? `Error${cause}`;
  const { code } = cause as { readonly code?: number };
  return code === undefined ? 'BorshIoError' : { Custom: code };
}

/** The message for users: which programs run without the package. */
export const NOT_INSTALLED =
  'without the package litesvm, only the system, token, associated token, memo and compute budget programs run: npm install litesvm';

/**
 * Loads the package, or returns undefined if it is not installed.
 *
 * @throws if the package is installed but cannot be loaded, for example because it has no binary for this system.
 */
export function loadLiteSvm(): LiteSvmModule | undefined {
  // The package may be installed next to the program, or in the project in whose folder the program runs.
  for (const from of [import.meta.url, join(process.cwd(), 'package.json')]) {
    // Not imported statically, because no bundle includes the package and it need not be installed.
    const require = createRequire(from);
    let file: string;
    try {
      file = require.resolve('litesvm');
    } catch {
      continue;
    }
    return require(file) as LiteSvmModule;
  }
  return undefined;
}
