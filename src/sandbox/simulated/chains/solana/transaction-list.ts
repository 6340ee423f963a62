import { base64ToBytes } from '../../../../engine/crypto/encoding.ts';
import type { Decoded } from '../evm/abis.ts';
import { type ListedTransaction, positionIn } from '../evm/transaction-list.ts';
import { makeTurns } from '../turns.ts';
import { describeError } from './failures.ts';
import { parseInstruction } from './parse-instruction.ts';
import type { SolanaParts } from './parts.ts';
import { COMPUTE_BUDGET_PROGRAM, decodeSolana, type Instruction, withLoaded } from './plan.ts';
import { type Receipt, receiptsBefore } from './receipts.ts';

/** Lists the included transactions of a Solana chain, newest first, like `listTransactions` of EVM chains. */
export async function listSolanaTransactions(
  parts: SolanaParts,
  { limit, before }: { limit: number; before: string | undefined },
): Promise<readonly ListedTransaction[]> {
  const place = { store: parts.world.store, caip2: parts.caip2 };
  const turn = makeTurns();
  const transactions: ListedTransaction[] = [];
  for (const receipt of receiptsBefore(place, { before: positionIn(before), limit })) {
    transactions.push(listed(parts, receipt));
    await turn();
  }
  return transactions;
}

function listed({ world: { store }, caip2 }: SolanaParts, receipt: Receipt): ListedTransaction {
  const { hash, block, wire, error, units, logs, loaded, index } = receipt;
  const decoded = decodeSolana(base64ToBytes(wire));
  const { instructions } = withLoaded(decoded, loaded);
  const isBudget = ({ program }: Instruction): boolean => program === COMPUTE_BUDGET_PROGRAM;
  const first = instructions.find((instruction) => !isBudget(instruction)) ?? instructions[0];
  const sent = store.first('select 1 from transactions where caip2 = ? and hash = ?', caip2, hash);
  return {
    ...{ hash, block, sender: decoded.plan.feePayer, recipient: first?.program ?? null, contract: null },
    // CHOICE: a Solana transaction has no value of its own, so its amounts appear only in its movements.
    ...{ value: 0n, data: wire, gasUsed: units, position: `${block.number}.${index}` },
    call: first && callOf(first),
    ...{ logs: [], messages: logs, isDeposit: sent === undefined },
    reason: error === null ? undefined : describeError(error),
  };
}

/** Describes an instruction as nodes do. Returns undefined if they do not parse it. */
function callOf({ program, accounts, data }: Instruction): Decoded | undefined {
  const found = parseInstruction({ program, accounts: accounts.map(({ address }) => address), data });
  if (found === undefined) return undefined;
  if (typeof found.parsed === 'string') {
    return { name: 'memo', arguments: [{ name: 'text', type: '', value: found.parsed }] };
  }
  const { type, info } = found.parsed;
  return {
    name: type,
    arguments: Object.entries(info).map(([name, value]) => ({ name, type: '', value: textOf(value) })),
  };
}

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
}
