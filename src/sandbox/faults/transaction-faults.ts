import type { DrawTransactionFault, TransactionFault } from '../../ports/fault-injection.ts';
import type { SandboxFaultEffect } from '../generated/schemas.ts';
import type { FaultHit, FaultRules } from './fault-rules.ts';

const effects: ReadonlySet<SandboxFaultEffect> = new Set<SandboxFaultEffect>([
  'transaction_revert',
  'transaction_drop',
  'transaction_delay',
  'transaction_reorganization',
]);

/** Finds the rule that applies to a transaction of a simulated chain. */
export function drawTransactionFault(rules: FaultRules): DrawTransactionFault {
  return ({ caip2, signers }) => {
    const hit = rules.draw(effects, (rule, { chain, address }) => {
      if (chain !== undefined && chain !== caip2) return false;
      return rule.wallet_id === null || (address !== undefined && signers.includes(address));
    });
    return hit && faultOf(hit);
  };
}

function faultOf({ rule, delayMs }: FaultHit): TransactionFault {
  switch (rule.effect) {
    case 'transaction_revert':
      return { effect: 'revert' };
    case 'transaction_drop':
      return { effect: 'drop' };
    case 'transaction_delay':
      return { effect: 'delay', delayMs };
    default:
      return { effect: 'reorganization', blocks: rule.blocks ?? 1 };
  }
}
