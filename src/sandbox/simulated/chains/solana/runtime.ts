import { equalBytes } from '../../../../engine/crypto/encoding.ts';
import {
  ASSOCIATED_TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from '../../../../engine/signing/solana/associated-token.ts';
import { rentExemption, type SolanaAccount, SYSTEM_PROGRAM } from './accounts.ts';
import { InstructionFailureError, type TransactionError } from './failures.ts';
import { type AccountMeta, COMPUTE_BUDGET_PROGRAM, type Instruction, type ResolvedSolana } from './plan.ts';
import { runAssociatedToken } from './programs/associated-token.ts';
import { runMemo } from './programs/memo.ts';
import { runSystem } from './programs/system.ts';
import { runToken } from './programs/token.ts';

/** The effects of a transaction, not including its fee. */
export interface Outcome {
  readonly error: TransactionError | null;
  readonly logs: readonly string[];
  readonly units: bigint;
  /** For each instruction of the transaction, the instructions that it invoked, in order. */
  readonly inner: readonly (readonly InnerInstruction[])[];
  readonly returned: { readonly program: string; readonly data: Uint8Array } | null;
  readonly changed: ReadonlyMap<string, SolanaAccount>;
}

export interface InnerInstruction extends Instruction {
  /** The depth of the call. It is 2 if an instruction of the transaction made the call. */
  readonly height: number;
}

/** A transaction to execute. */
export interface Task {
  readonly wire: Uint8Array;
  readonly resolved: ResolvedSolana;
  /** The maximum number of compute units. */
  readonly units: bigint;
  /** Returns an account as it is after the fee was paid. */
  account(address: string): SolanaAccount;
  readonly slot: number;
  readonly seconds: number;
  /** The fee that the payer has already paid. */
  readonly fee: bigint;
}

/** Executes transactions on accounts without storing anything. */
export interface Executor {
  /** Returns whether the executor has a program that is not in the store. */
  has(program: string): boolean;
  /** Explains to users why other programs do not run. Undefined if all programs run. */
  readonly limit?: string;
  run(task: Task): Outcome;
}

/** The interface of a program to the runtime while one of its instructions runs. */
export interface Invocation {
  readonly program: string;
  readonly accounts: readonly AccountMeta[];
  readonly data: Uint8Array;
  /**
   * Returns the address of an account of the instruction.
   *
   * @throws InstructionFailureError
   */
  at(index: number): string;
  account(address: string): SolanaAccount;
  isSigner(address: string): boolean;
  /**
   * Sets an account's lamports. The account must be writable even if they do not change.
   *
   * @throws InstructionFailureError
   */
  pay(address: string, lamports: bigint): void;
  /**
   * Changes an account, as far as the rules of the runtime allow.
   *
   * @throws InstructionFailureError
   */
  set(address: string, account: SolanaAccount): void;
  log(text: string): void;
  /**
   * Charges compute units. Ends the instruction if the transaction has none left.
   *
   * @throws InstructionFailureError
   */
  charge(units: number): void;
  /**
   * Invokes another program. The accounts in `signers` have addresses derived from the caller, and count as signers.
   */
  invoke(instruction: Instruction): void;
  return(data: Uint8Array): void;
}

interface Program {
  readonly run: (invocation: Invocation) => void;
  /** Whether the program is bytecode on a real chain. Such programs log the units that they use. */
  readonly isBytecode: boolean;
  readonly units: number;
}

const bytecode = (run: Program['run'], units: number): Program => ({ run, isBytecode: true, units });

// CHOICE: without the package `litesvm`, the compute units of an instruction are constants that are close to those of
// the real programs. Only the unit limit affects the fee.
const programs: Readonly<Record<string, Program>> = {
  [SYSTEM_PROGRAM]: { run: runSystem, isBytecode: false, units: 150 },
  [COMPUTE_BUDGET_PROGRAM]: { run: () => undefined, isBytecode: false, units: 150 },
  [TOKEN_PROGRAM]: bytecode(runToken, 150),
  [TOKEN_2022_PROGRAM]: bytecode(runToken, 1_500),
  [ASSOCIATED_TOKEN_PROGRAM]: bytecode(runAssociatedToken, 12_000),
  MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr: bytecode(runMemo, 2_000),
  Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo: bytecode(runMemo, 2_000),
};

/**
 * Returns an executor for the programs that run without the package `litesvm`.
 *
 * @param limit see `Executor`.
 */
export const ownExecutor = (limit: string): Executor => ({
  limit,
  has: (program) => Object.hasOwn(programs, program),
  run({ resolved, units: limit, account }) {
    const accounts = new Map<string, SolanaAccount>();
    const logs: string[] = [];
    const inner: InnerInstruction[][] = resolved.instructions.map(() => []);
    let left = Number(limit);
    let returned: Outcome['returned'] = null;
    let current = 0;

    const load = (address: string): SolanaAccount => {
      const known = accounts.get(address) ?? account(address);
      accounts.set(address, known);
      return known;
    };

    function charge(units: number): void {
      left -= units;
      if (left >= 0) return;
      left = 0;
      throw new InstructionFailureError('ComputationalBudgetExceeded');
    }

    function call(instruction: Instruction, height: number): void {
      const { program: id, accounts: metas, data } = instruction;
      const program = Object.hasOwn(programs, id) ? programs[id] : undefined;
      if (program === undefined) throw new InstructionFailureError('UnsupportedProgramId');
      const before = left;
      if (height > 1) inner[current]!.push({ ...instruction, height });
      logs.push(`Program ${id} invoke [${height}]`);
      const signers = new Set(metas.filter(({ isSigner }) => isSigner).map(({ address }) => address));
      const writable = new Set(metas.filter(({ isWritable }) => isWritable).map(({ address }) => address));
      /** Accounts that bytecode has changed are checked when the bytecode ends. */
      const touched = new Map<string, SolanaAccount>();
      const consumed = (): void => {
        if (program.isBytecode)
          logs.push(`Program ${id} consumed ${before - left} of ${before} compute units`);
      };
      try {
        charge(program.units);
        program.run({
          ...{ program: id, accounts: metas, data, account: load, charge },
          at(index) {
            const meta = metas[index];
            if (meta === undefined)
              throw new InstructionFailureError(
                program.isBytecode ? 'NotEnoughAccountKeys' : 'MissingAccount',
              );
            return meta.address;
          },
          isSigner: (address) => signers.has(address),
          pay(address, lamports) {
            const account = load(address);
            requireAllowed(id, account, { ...account, lamports }, writable.has(address));
            if (!writable.has(address)) throw new InstructionFailureError('ReadonlyLamportChange');
            if (lamports !== account.lamports) accounts.set(address, { ...account, lamports });
          },
          set(address, account) {
            const earlier = load(address);
            if (!program.isBytecode) requireAllowed(id, earlier, account, writable.has(address));
            else if (!touched.has(address)) touched.set(address, earlier);
            accounts.set(address, account);
          },
          log: (text) => void logs.push(text),
          invoke(invoked) {
            const escalated = invoked.accounts.find(
              ({ address, isWritable }) => isWritable && !writable.has(address),
            );
            if (escalated !== undefined) {
              logs.push(`${escalated.address}'s writable privilege escalated`);
              throw new InstructionFailureError('PrivilegeEscalation');
            }
            call(invoked, height + 1);
          },
          return(data) {
            returned = { program: id, data };
            logs.push(`Program return: ${id} ${Buffer.from(data).toString('base64')}`);
          },
        });
      } catch (error) {
        if (!(error instanceof InstructionFailureError)) throw error;
        consumed();
        logs.push(`Program ${id} failed: ${error.message}`);
        throw error;
      }
      consumed();
      try {
        for (const { address } of metas) {
          const earlier = touched.get(address);
          if (earlier !== undefined) requireAllowed(id, earlier, load(address), writable.has(address));
        }
      } catch (error) {
        if (error instanceof InstructionFailureError) logs.push(`Program ${id} failed: ${error.message}`);
        throw error;
      }
      logs.push(`Program ${id} success`);
    }

    let error: TransactionError | null = null;
    try {
      for (const [index, instruction] of resolved.instructions.entries()) {
        current = index;
        call(instruction, 1);
      }
    } catch (thrown) {
      if (!(thrown instanceof InstructionFailureError)) throw thrown;
      error = { InstructionError: [current, thrown.error] };
    }
    error ??= rentError(resolved, account, load);
    const changed = new Map([...accounts].filter(([address, each]) => each !== account(address)));
    const units = BigInt(Number(limit) - left);
    return { error, logs, units, inner, returned, changed: error === null ? changed : new Map() };
  },
});

// Requires that the rules of the runtime allow a program's change of an account. Source: transaction-context.
function requireAllowed(
  program: string,
  before: SolanaAccount,
  after: SolanaAccount,
  isWritable: boolean,
): void {
  const isOwn = before.owner === program;
  const isSystem = program === SYSTEM_PROGRAM;
  if (after.lamports !== before.lamports) {
    if (after.lamports < before.lamports && !isOwn)
      throw new InstructionFailureError('ExternalAccountLamportSpend');
    if (!isWritable) throw new InstructionFailureError('ReadonlyLamportChange');
  }
  // For the system program, setting the data counts as a change even if the data is equal.
  const hasChanged = isSystem ? after.data !== before.data : !equalBytes(after.data, before.data);
  if (hasChanged) {
    if (!isWritable) throw new InstructionFailureError('ReadonlyDataModified');
    if (!isOwn) throw new InstructionFailureError('ExternalAccountDataModified');
  }
  if (after.owner !== before.owner && !(isOwn && isWritable))
    throw new InstructionFailureError('ModifiedProgramId');
}

/**
 * Returns an error if a writable account breaks the rent rules. After a transaction, it must have no lamports or be
 * rent-exempt; or, if it was below the rent exemption before, it must not have gained lamports or changed its size.
 */
function rentError(
  { accounts }: ResolvedSolana,
  before: (address: string) => SolanaAccount,
  after: (address: string) => SolanaAccount,
): TransactionError | null {
  for (const [index, { address, isWritable }] of accounts.entries()) {
    if (isWritable && !keepsRent(before(address), after(address))) {
      return { InsufficientFundsForRent: { account_index: index } };
    }
  }
  return null;
}

/** Returns whether the rent rules allow a change of an account. Source: svm rent_calculator.rs. */
export function keepsRent(before: SolanaAccount, after: SolanaAccount): boolean {
  const isExempt = ({ lamports, data }: SolanaAccount): boolean =>
    lamports === 0n || lamports >= rentExemption(data.length);
  if (isExempt(after)) return true;
  return !isExempt(before) && before.data.length === after.data.length && after.lamports <= before.lamports;
}
