import {
  type Authority,
  type Change,
  makeAuthority,
  type Resource,
  type Settings,
  type Use,
} from './authority.ts';
import type { Member } from './client.ts';

/*
 * What must be true, in the simplest words. Nothing here reads anything of the server: facts come from what clients
 * have sent and from the answers that they have received.
 */

/** What clients know about something that they asked for. */
type Knowledge =
  /** It was refused: it must never happen. */
  | 'refused'
  /** Sent, and not answered yet; or never answered. */
  | 'unknown'
  /** Acknowledged: it must not be lost. */
  | 'acknowledged';

/** Money sent to an address that nothing else pays to. */
export interface Payment {
  readonly caip2: string;
  readonly recipient: string;
  readonly rawAmount: bigint;
  /** Whether enough owners may have signed, and no policy denied it. */
  mayBe(): boolean;
  knowledge: Knowledge;
  /** How to ask the server about it. */
  action?: { readonly walletId: string; readonly id: string };
  transactionId?: string;
  intent?: Intent;
  /** Nothing can change any more. */
  isOver: boolean;
}

/** A proposed payment or change. */
export interface Intent {
  readonly id: string;
  readonly request: object;
  /** Whose owners must agree. */
  readonly resource: Resource;
  /** When its client had the answer. */
  readonly knownAt: number;
  /** Who may have signed. */
  readonly signers: Set<Member>;
  /** Requests that may have executed it. */
  readonly uses: Use[];
  /** Its resource has changed since: no later request may execute it. */
  isDismissed: boolean;
  isExecuted: boolean;
  /** A request that may have executed it has ended without an answer. */
  isUnclear: boolean;
  /** Begins the change that it proposes, if it does. */
  readonly begin?: () => Change;
  /** The change that a request may be making now. */
  change: Change | undefined;
}

export const newIntent = (part: Pick<Intent, 'id' | 'request' | 'resource' | 'knownAt'>): Intent => ({
  ...part,
  ...{ signers: new Set(), uses: [], change: undefined },
  ...{ isDismissed: false, isExecuted: false, isUnclear: false },
});

/** A signature that counts towards a running total. */
export interface Spending {
  readonly value: bigint;
  /** When the server may have received the request, Unix ms. */
  readonly atMs: number[];
  knowledge: Knowledge;
}

/** Money that leaves for a bank account. */
interface Payout {
  readonly rawAmount: bigint;
  knowledge: Knowledge;
  actionId?: string;
}

/** A card that its user knows. */
export interface KnownCard {
  readonly id: string;
  readonly issuerId: string;
  /** Undefined while several values are possible. */
  status: 'active' | 'inactive' | undefined;
  /** Requests that may still change it. */
  changes: number;
  /** All that were sent. */
  changesSent: number;
  /** Acknowledged, and final. */
  isCanceled: boolean;
}

/** Money that a bank has received for a deposit account. */
interface BankDeposit {
  readonly id: string;
  readonly outcome: 'completed' | 'refunded';
}

/** A wallet that clients know. */
export interface KnownWallet {
  readonly id: string;
  readonly address: string;
  readonly chainType: string;
  archived: Knowledge;
}

/** A creation that must happen once. */
export interface Creation {
  readonly externalId: string;
  readonly chainType: string;
  knowledge: Knowledge;
}

/** A call that can be repeated with its idempotency key. */
interface Repeatable {
  readonly atMs: number;
  readonly text: string;
  repeat(
    body?: object,
  ): Promise<
    | { readonly kind: 'done'; readonly text: string; readonly isReplay: boolean }
    | { readonly kind: 'refused'; readonly status: number; readonly message: string }
    | { readonly kind: 'unknown' }
  >;
}

export interface Model {
  readonly payments: Payment[];
  readonly authority: Authority;
  readonly intents: Intent[];
  /** Begins the changes of intents that requests in progress may execute as things are now. */
  beginWhatMayHappen(): void;
  readonly spendings: Spending[];
  readonly payouts: Payout[];
  readonly bankDeposits: BankDeposit[];
  readonly cards: KnownCard[];
  /** Ids of payments that merchants have not taken yet. */
  readonly cardPayments: string[];
  readonly creations: Creation[];
  readonly wallets: KnownWallet[];
  readonly users: Map<string, { ids: Set<string>; tried: number }>;
  readonly repeatables: Repeatable[];
}

export function makeModel(settings: Settings): Model {
  const authority = makeAuthority(settings);
  const intents: Intent[] = [];
  return {
    authority,
    intents,
    beginWhatMayHappen() {
      // A change may enable the next.
      for (let hasBegun = true; hasBegun; ) {
        hasBegun = false;
        for (const intent of intents) {
          if (intent.begin === undefined || intent.change !== undefined || intent.isExecuted) continue;
          const open = intent.uses.filter(({ until }) => until === undefined);
          if (!open.some((use) => authority.mayChange(intent.resource, use))) continue;
          intent.change = intent.begin();
          hasBegun = true;
        }
      }
    },
    payments: [],
    spendings: [],
    payouts: [],
    bankDeposits: [],
    cards: [],
    cardPayments: [],
    creations: [],
    wallets: [],
    users: new Map(),
    repeatables: [],
  };
}

/** The rules of the capped wallet: at most this much within each window. */
export const cap = { rawAmount: 100n, windowMs: 3_600_000 };

/** What an account of its own may hold. */
export function mayHold(payment: Payment): readonly bigint[] {
  if (payment.knowledge === 'refused' || !payment.mayBe()) return [0n];
  return [0n, payment.rawAmount];
}

/** A window in which more was signed than the policy allows; undefined if there is none. */
export function exceededWindow(spendings: readonly Spending[]): string | undefined {
  const certain = spendings.filter(
    ({ knowledge, atMs }) => knowledge === 'acknowledged' && atMs.length === 1,
  );
  for (const last of certain) {
    const endMs = last.atMs[0]!;
    const within = certain.filter(({ atMs }) => atMs[0]! <= endMs && atMs[0]! > endMs - cap.windowMs);
    const total = within.reduce((sum, { value }) => sum + value, 0n);
    if (total > cap.rawAmount) return `${total} within the window that ends at ${endMs}`;
  }
  return undefined;
}

/** Whether a denial was right: what may have been signed leaves no room. */
export function mayBeDenied(spendings: readonly Spending[], denied: Spending): boolean {
  const sinceMs = Math.min(...denied.atMs) - cap.windowMs;
  const others = spendings.filter(
    (each) => each !== denied && each.knowledge !== 'refused' && each.atMs.some((atMs) => atMs > sinceMs),
  );
  return others.reduce((sum, { value }) => sum + value, denied.value) > cap.rawAmount;
}
