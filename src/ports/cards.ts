import type { IntegrationEnvironment } from '../generated/schemas.ts';

/** The issuer's own environments. Each has its own customers, cards and money. */
export type CardEnvironment = IntegrationEnvironment;

/**
 * Why the issuer declines a request that it understood. `data` names an invalid value, `pair` an asset or network,
 * `state` a state that does not allow the request.
 */
export interface CardRefusal {
  readonly fault: 'data' | 'pair' | 'state';
  readonly message: string;
}

/** The terms that users accept, and the data that the pages of apps need. */
export interface CardProgram {
  /** The key with which pages encrypt PINs. */
  readonly publishableKey: string;
  readonly logoUrl: string | null;
  /** The account that collects payments. The owner of a wallet approves it as a spender. */
  readonly spenderAddress: string;
  readonly disclosureUrl: string;
  readonly bank: {
    readonly name: string;
    readonly agreements: readonly { readonly id: string; readonly name: string; readonly url: string }[];
  };
}

export type CardStatus = 'active' | 'inactive' | 'canceled';

export interface CardOrder {
  /** Identifies the request, so that a repetition issues nothing new. */
  readonly key: string;
  /** The id of the customer at the provider that verified it. */
  readonly customerId: string;
  readonly caip2: string;
  readonly tokenAddress: string;
  readonly decimals: number;
  /** The address of the wallet from which the card pays. */
  readonly address: string;
}

/** A card as the issuer reports it. Of the card's number, it has only the last four digits. */
export interface IssuedCard {
  readonly id: string;
  readonly status: CardStatus;
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: number;
  readonly expYear: number;
  /** Increases with each change, so that an older report never replaces a newer one. */
  readonly revision: number;
}

export interface CardChange {
  readonly status?: CardStatus | undefined;
  /** Only with the status `canceled`: why the card is canceled. */
  readonly reason?: 'lost' | 'stolen' | undefined;
  /** The PIN as the user's page encrypted it. Only the issuer can decrypt it. */
  readonly encryptedPin?: string | undefined;
}

/** A payment or a refund. */
export interface CardPayment {
  readonly id: string;
  readonly kind: 'purchase' | 'refund';
  readonly status: 'pending' | 'posted' | 'declined' | 'expired' | 'reversed';
  /** The amount in cents: for a pending payment the authorized amount, for a posted payment the captured amount. */
  readonly cents: bigint;
  /** ISO 4217 in lower case. */
  readonly currency: string;
  readonly merchant: string | null;
  readonly createdAtMs: number;
  /** When the payment was posted, Unix ms. Null until then. */
  readonly postedAtMs: number | null;
}

export interface PaymentPage {
  readonly payments: readonly CardPayment[];
  /** The cursor for the next call. Null on the last page. */
  readonly nextCursor: string | null;
}

/** Selects the payments that were posted at or after `fromMs` and before `beforeMs`, in the order of posting. */
export interface PostedQuery {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly limit: number;
}

/**
 * One environment of a card issuer whose cards spend from wallets. The issuer collects a payment with `transferFrom`,
 * as a spender that the wallet's owner has approved. When the issuer cannot be reached, methods reject with an error
 * that `isUnavailable` recognizes. All methods that change something are idempotent by `key` or id.
 */
export interface CardIssuer {
  /** The networks on which the issuer's cards spend. */
  readonly networks: 'test' | 'main' | 'all';
  /** The provider that verifies the customers of this issuer. */
  readonly verifiedBy: string;
  /** The endorsement that a customer needs from that provider. */
  readonly endorsement: string;

  program(): Promise<CardProgram>;
  issue(order: CardOrder): Promise<IssuedCard | CardRefusal>;
  change(cardId: string, change: CardChange): Promise<IssuedCard | CardRefusal>;
  /** Cancels a card and issues its successor. If the card has already been replaced, returns the existing successor. */
  replace(
    cardId: string,
    reason: 'lost' | 'stolen' | 'expired',
  ): Promise<{ readonly old: IssuedCard; readonly successor: IssuedCard }>;
  /** Returns payments, newest first. Undefined for an unknown cursor. */
  payments(
    cardId: string,
    page: { readonly cursor: string | undefined; readonly limit: number },
  ): Promise<PaymentPage | undefined>;
  posted(cardId: string, query: PostedQuery): Promise<readonly CardPayment[]>;
  /** Returns a secret that lets the page with this nonce show the card's number. */
  ephemeralKey(cardId: string, nonce: string): Promise<string | CardRefusal>;
}

/** The issuers to which this server is connected. */
export interface CardIssuers {
  /** Returns undefined when this environment is not configured. */
  find(environment: CardEnvironment): CardIssuer | undefined;
}

/** Keeps the keys of custodial wallets, which it identifies by the server's wallet ids. */
export interface Custodian {
  /**
   * Opens a wallet for one of the custodian's customers. Idempotent by wallet id. Returns undefined when the
   * custodian has no such customer.
   */
  openWallet(order: {
    readonly walletId: string;
    readonly userId: string;
    /** The chain's name. */
    readonly chain: string;
  }): Promise<{ readonly address: string } | undefined>;
}

/** The custodians to which this server is connected. */
export interface Custodians {
  /** Returns undefined when no custodian with this name is configured. */
  find(provider: string): Custodian | undefined;
}
