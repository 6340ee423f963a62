import {
  ASSOCIATED_TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from '../../../../engine/signing/solana/associated-token.ts';
import type { Machine } from '../blocks.ts';
import { FEE_ACCOUNT, type Movement, NATIVE, RevertError } from '../ledger.ts';
import type { PoolEntry } from '../pool.ts';
import type { SolanaInstructionPlan, SolanaPlan } from './plan.ts';
import { rentExemption, type SolanaState, TOKEN_ACCOUNT_BYTES } from './state.ts';
import {
  moveLamports,
  readData,
  requireSigner,
  runAssociatedToken,
  runToken,
  type SolanaFrame,
} from './tokens.ts';

const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111';
const LAMPORTS_PER_SIGNATURE = 5_000n;
const SYSTEM_TRANSFER = 2;

// CHOICE: compute units as measured for these programs, rounded. The fee does not depend on them.
const UNITS: Readonly<Record<string, bigint>> = {
  [SYSTEM_PROGRAM]: 150n,
  [COMPUTE_BUDGET_PROGRAM]: 150n,
  [TOKEN_PROGRAM]: 6_200n,
  [TOKEN_2022_PROGRAM]: 6_200n,
  [ASSOCIATED_TOKEN_PROGRAM]: 25_000n,
};
const OTHER_UNITS = 10_000n;
const DEFAULT_UNITS_PER_INSTRUCTION = 200_000n;

export interface SolanaRun {
  readonly fee: bigint;
  readonly units: bigint;
  readonly revert: RevertError | undefined;
  readonly movements: readonly Movement[];
}

/** Executes Solana transactions like a node, limited to the programs that simulated chains support. */
export function makeSolanaMachine(
  state: SolanaState,
  isBlockhashAlive: (blockhash: string) => boolean,
): Machine<SolanaPlan> {
  return {
    readiness({ plan }: PoolEntry<SolanaPlan>) {
      // CHOICE: Solana has no replacement, so both sentinels mean that no leader includes the transaction.
      const isNeverIncluded = plan.sentinel === 'stuck' || plan.sentinel === 'replaced';
      if (!isBlockhashAlive(plan.blockhash)) return 'drop';
      if (isNeverIncluded) return 'waits';
      return canPay(state, plan) ? 'ready' : 'drop';
    },
    execute:
      async ({ plan }) =>
      () => {
        const { fee, revert, movements } = runSolana(state, plan, { isIncluded: true });
        return { fee, failure: revert?.message, movements };
      },
    replacementOf: () => null,
  };
}

/** Whether the fee payer can pay the fee and then holds at least its rent exemption, or nothing. */
export function canPay({ ledger }: SolanaState, plan: SolanaPlan): boolean {
  const rest = ledger.balance(plan.feePayer, NATIVE) - feeOf(plan);
  return rest === 0n || rest >= rentExemption(0);
}

/** Charges the fee and executes the instructions; reverts all of them when one fails. */
export function runSolana(
  state: SolanaState,
  plan: SolanaPlan,
  { isIncluded }: { isIncluded: boolean },
): SolanaRun {
  const { ledger } = state;
  const fee = feeOf(plan);
  ledger.debit({ owner: plan.feePayer, asset: NATIVE, amount: fee, shortfall: 'the fee cannot be paid' });
  ledger.credit(FEE_ACCOUNT, NATIVE, fee);
  const frame: SolanaFrame = { state, plan, movements: [] };
  let revert: RevertError | undefined;
  try {
    state.store.atomically(() => {
      for (const instruction of plan.instructions) runInstruction(frame, instruction);
      assertRent(frame);
      if (isIncluded && plan.sentinel === 'reverted') throw new RevertError('custom program error: 0x0');
    });
  } catch (error) {
    if (!(error instanceof RevertError)) throw error;
    revert = error;
  }
  const units = plan.instructions.reduce((sum, { programId }) => sum + (UNITS[programId] ?? OTHER_UNITS), 0n);
  return { fee, units, revert, movements: revert === undefined ? frame.movements : [] };
}

/** 5000 lamports per signature + requested units * unit price, rounded up. Source: Solana docs, transaction fees. */
export function feeOf({ signatureCount, instructions }: SolanaPlan): bigint {
  let unitLimit: bigint | undefined;
  let microLamportsPerUnit = 0n;
  for (const { programId, dataHex } of instructions) {
    if (programId !== COMPUTE_BUDGET_PROGRAM) continue;
    if (dataHex.startsWith('02') && dataHex.length === 10) {
      unitLimit = readData(dataHex.slice(2), (reader) => BigInt(reader.u32()));
    }
    if (dataHex.startsWith('03') && dataHex.length === 18) {
      microLamportsPerUnit = readData(dataHex.slice(2), (reader) => reader.u64());
    }
  }
  const others = instructions.filter(({ programId }) => programId !== COMPUTE_BUDGET_PROGRAM).length;
  const units = unitLimit ?? DEFAULT_UNITS_PER_INSTRUCTION * BigInt(others);
  return (
    LAMPORTS_PER_SIGNATURE * BigInt(signatureCount) + (units * microLamportsPerUnit + 999_999n) / 1_000_000n
  );
}

function runInstruction(frame: SolanaFrame, instruction: SolanaInstructionPlan): void {
  const { programId } = instruction;
  if (programId === SYSTEM_PROGRAM) runSystem(frame, instruction);
  else if (programId === ASSOCIATED_TOKEN_PROGRAM) runAssociatedToken(frame, instruction);
  else if (programId === TOKEN_PROGRAM || programId === TOKEN_2022_PROGRAM) {
    readData(instruction.dataHex, () => runToken(frame, instruction));
  }
  // CHOICE: an unsupported program (memo, compute budget, a tester's own) succeeds without effect.
}

function runSystem(frame: SolanaFrame, { accounts, dataHex }: SolanaInstructionPlan): void {
  const { kind, lamports } = readData(dataHex, (reader) => {
    const discriminator = reader.u32();
    return { kind: discriminator, lamports: discriminator === SYSTEM_TRANSFER ? reader.u64() : 0n };
  });
  if (kind !== SYSTEM_TRANSFER) throw new RevertError(`system instruction ${kind} is not simulated`);
  const [from, to] = accounts;
  if (to === undefined) throw new RevertError('insufficient account keys for instruction');
  requireSigner(frame, from!);
  if (frame.state.tokenAccount(from!) !== undefined)
    throw new RevertError('Transfer: `from` must not carry data');
  moveLamports(frame, from!, to, lamports);
}

/** Every writable account must end with at least its rent exemption, or with nothing. */
function assertRent({ state, plan }: SolanaFrame): void {
  for (const address of plan.writable) {
    const lamports = state.ledger.balance(address, NATIVE);
    const size = state.tokenAccount(address) === undefined ? 0 : TOKEN_ACCOUNT_BYTES;
    if (lamports > 0n && lamports < rentExemption(size)) {
      throw new RevertError('Transaction results in an account with insufficient funds for rent');
    }
  }
}
