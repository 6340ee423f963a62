import type { Entropy } from '../../ports/entropy.ts';
import type { SandboxFault, SandboxFaultEffect } from '../generated/schemas.ts';

/** CHOICE: the most rules. */
export const MAX_FAULTS = 100;

/** A rule. `hits` counts how often it has applied. */
export type FaultRule = SandboxFault;

/** What a rule selects by, as the server names it. */
export interface Selection {
  /** CAIP-2. */
  readonly chain?: string | undefined;
  readonly walletId?: string | undefined;
  /** What clients call the wallet: its id, and its external id if it has one. */
  readonly walletNames?: readonly string[] | undefined;
  /** As its chain notes it; those of EVM chains in lower case. */
  readonly address?: string | undefined;
  readonly eventType?: string | undefined;
}

/** A rule that applies. */
export interface FaultHit {
  readonly rule: FaultRule;
  /** Drawn, if the rule has a range. */
  readonly delayMs: number;
}

/**
 * The fault rules of one sandbox, in memory.
 *
 * CHOICE: a reset removes them, like everything else that was created since the start.
 */
export interface FaultRules {
  /** Undefined when there are too many. */
  add(rule: Omit<FaultRule, 'id' | 'hits'>, selection: Selection): FaultRule | undefined;
  all(): readonly FaultRule[];
  find(id: string): FaultRule | undefined;
  remove(id: string): FaultRule | undefined;
  /** Removes all rules; returns how many there were. */
  clear(): number;
  /** As after the start: without rules, and with the first id. */
  restart(): void;
  /**
   * The first rule with one of these effects that selects the occasion and applies to it.
   *
   * CHOICE: at most one rule applies to an occasion; those after it are not tried. A rule with the probability 1 draws
   * nothing.
   */
  draw(
    effects: ReadonlySet<SandboxFaultEffect>,
    selects: (rule: FaultRule, selection: Selection) => boolean,
  ): FaultHit | undefined;
}

/** @param entropy draws which occasions a rule applies to, and delays. */
export function createFaultRules(entropy: Entropy): FaultRules {
  let rules: FaultRule[] = [];
  const selections = new WeakMap<FaultRule, Selection>();
  let lastNumber = 0;
  /** From 0 to less than 1. */
  const share = (): number => Buffer.from(entropy.bytes(4)).readUInt32BE() / 2 ** 32;
  const applies = (rule: FaultRule): boolean => {
    if (rule.count !== null && rule.hits >= rule.count) return false;
    return rule.probability === 1 || share() < rule.probability;
  };
  const delayOf = ({ delay_ms: least, max_delay_ms: most }: FaultRule): number => {
    if (least === null) return 0;
    return most === null ? least : least + Math.floor(share() * (most - least + 1));
  };
  return {
    add(rule, selection) {
      if (rules.length >= MAX_FAULTS) return undefined;
      lastNumber += 1;
      const added = { ...rule, id: `fault_${lastNumber}`, hits: 0 };
      rules.push(added);
      selections.set(added, selection);
      return added;
    },
    all: () => rules,
    find: (id) => rules.find((rule) => rule.id === id),
    remove(id) {
      const found = rules.find((rule) => rule.id === id);
      rules = rules.filter((rule) => rule !== found);
      return found;
    },
    clear() {
      const count = rules.length;
      rules = [];
      return count;
    },
    restart() {
      rules = [];
      lastNumber = 0;
    },
    draw(effects, selects) {
      if (rules.length === 0) return undefined;
      const rule = rules.find(
        (each) => effects.has(each.effect) && selects(each, selections.get(each)!) && applies(each),
      );
      if (rule === undefined) return undefined;
      rule.hits += 1;
      return { rule, delayMs: delayOf(rule) };
    },
  };
}
