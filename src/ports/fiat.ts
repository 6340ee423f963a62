import type {
  ExternalFiatAccountAddress,
  ExternalFiatAccountData,
  FiatDepositInstructions,
  KYBSubmitData,
  KYCSubmitData,
  KyxEnvironment,
} from '../generated/schemas.ts';

export type { FiatDepositInstructions };

/** The provider's own environments. Each has its own customers, accounts and money. */
export type FiatEnvironment = KyxEnvironment;

/** An environment of a provider. */
export interface FiatPlace {
  readonly provider: string;
  readonly environment: FiatEnvironment;
}

export type CustomerKind = 'person' | 'business';

/**
 * Why the provider declines a request that it understood. `data` names an invalid value, `pair` an unsupported
 * currency, asset or network, `customer` a customer who is not allowed to do this.
 */
export interface FiatRefusal {
  readonly fault: 'data' | 'pair' | 'customer';
  /** A JSON pointer into the submitted data, if the provider names a field. Values are never repeated. */
  readonly pointer?: string;
  readonly message: string;
}

/** One check of a customer, with its status in the provider's spelling. */
interface CustomerCheck {
  readonly status: string;
  /** Where the customer continues; undefined if nothing is required of them. */
  readonly link?: string;
  /** Set only if the check was rejected. */
  readonly rejectionReasons?: readonly string[];
}

interface CustomerEndorsement {
  readonly name: string;
  readonly status: string;
  readonly missing: readonly string[] | null;
}

/** The provider's state of a customer. It contains no personal data. */
export interface CustomerSnapshot {
  /** The provider's current id of the customer. It replaces the id in the request. */
  readonly id: string;
  /** For example `not_started`, `incomplete`, `under_review`, `active`, `rejected`, `paused` or `offboarded`. */
  readonly status: string;
  readonly terms: CustomerCheck;
  readonly verification: CustomerCheck;
  readonly capabilities: {
    readonly payin_crypto: string;
    readonly payout_crypto: string;
    readonly payin_fiat: string;
    readonly payout_fiat: string;
  };
  readonly endorsements: readonly CustomerEndorsement[];
  readonly requirementsDue: readonly string[];
  readonly futureRequirementsDue: readonly string[];
}

interface CustomerTerms {
  /** The customer's id at the provider; undefined for a new customer. */
  readonly id: string | undefined;
  readonly kind: CustomerKind;
  /** The server's reference. Opening a customer with the same reference again returns the same customer. */
  readonly reference: string;
  /** The names of the endorsements (sets of services) to apply for; undefined for the standard ones. */
  readonly endorsements?: readonly string[] | undefined;
  /** The id of the terms that the customer has accepted in the app. */
  readonly clientAgreementId?: string | undefined;
}

export interface CustomerOrder extends CustomerTerms {
  readonly email: string;
  readonly name?: string | undefined;
  /** Where the hosted pages redirect the customer at the end. */
  readonly redirectUri?: string | undefined;
}

/** Submitted data. It is sent to the provider and not stored. */
export type Submission = CustomerTerms &
  (
    | { readonly kind: 'person'; readonly data: KYCSubmitData }
    | { readonly kind: 'business'; readonly data: KYBSubmitData }
  );

export interface BankAccountOrder {
  /** Identifies the request, so that a repetition registers nothing new. */
  readonly key: string;
  readonly customerId: string;
  readonly ownerKind: CustomerKind;
  readonly ownerName: string;
  readonly bankName?: string | undefined;
  /** ISO 4217 in lower case. */
  readonly currency: string;
  readonly account: ExternalFiatAccountData;
  readonly address?: ExternalFiatAccountAddress | undefined;
}

export interface RegisteredBankAccount {
  readonly id: string;
  readonly last4?: string | undefined;
  readonly bankName?: string | undefined;
}

export interface FiatAsset {
  readonly caip2: string;
  /** The name of the chain in the API, for example `base`. */
  readonly chain: string;
  /** The name of the asset in the API, for example `usdc`. */
  readonly asset: string;
  /** The smart contract (EVM, TRON) or mint (Solana); null for the native asset. */
  readonly tokenAddress: string | null;
  readonly decimals: number;
}

export interface VirtualAccountOrder {
  /** Identifies the request, so that a repetition opens nothing new. */
  readonly key: string;
  readonly customerId: string;
  /** ISO 4217 in lower case. */
  readonly currency: string;
  readonly destination: FiatAsset & { readonly address: string };
  /** The app's fee on each deposit: a decimal string from 0 to below 100. */
  readonly developerFeePercent: string;
}

export interface VirtualAccount {
  readonly id: string;
  readonly status: 'activated' | 'deactivated';
  readonly currency: string;
  readonly paymentRails: readonly string[];
  /** Where and how to pay in. Null while the provider prepares the instructions. */
  readonly instructions: FiatDepositInstructions | null;
}

/** The states of a deposit, in the order in which they can occur. */
export type FiatDepositState = 'received' | 'in_review' | 'delivering' | 'delivered' | 'refunded';

/** One entry of the provider's history. Entries may be repeated, and may arrive in any order. */
export interface FiatDepositReport {
  readonly depositId: string;
  readonly virtualAccountId: string;
  readonly state: FiatDepositState;
  /** In units of the currency, as a decimal string. */
  readonly amount: string;
  readonly currency: string;
  readonly paymentRail?: string | undefined;
  readonly senderName?: string | undefined;
  /** The hash of the provider's transfer to the wallet; undefined until it is sent. */
  readonly transactionHash?: string | undefined;
  /** The delivered amount in base units; undefined until the transfer is sent. */
  readonly rawOutput?: bigint | undefined;
  /** Why the deposit was refunded, if it was. */
  readonly reason?: string | undefined;
  readonly reasonCode?: string | undefined;
  readonly atMs: number;
}

export interface FiatDepositPage {
  readonly reports: readonly FiatDepositReport[];
  /** The cursor for the next call. Unchanged when there are no more reports. */
  readonly cursor: string | undefined;
  readonly hasMore: boolean;
}

export interface PayoutOrder {
  /** Identifies the payout, so that a repetition opens nothing new. */
  readonly key: string;
  readonly customerId: string;
  readonly bankAccountId: string;
  readonly source: FiatAsset & {
    /** The address that makes the deposit and receives a refund. */
    readonly address: string;
  };
  readonly rawAmount: bigint;
  /** `ach`, `ach_same_day`, `wire`, `fednow`, `sepa`, `faster_payments`, `pix` or `swift`. */
  readonly rail: string;
  /** ISO 4217 in lower case. */
  readonly currency: string;
  /** The app's fee: a decimal string from 0 to below 100. */
  readonly developerFeePercent: string;
}

/**
 * The provider's terms. A block must include the deposit by `expiresAtSeconds`; the provider refunds later deposits.
 */
export interface OpenedPayout {
  readonly id: string;
  readonly depositAddress: string;
  /** The exact amount to deposit. */
  readonly rawAmount: bigint;
  readonly expiresAtSeconds: number;
}

/**
 * The provider's state of a payout. `error` and `canceled` end the payout without a refund. `undeliverable` and
 * `returned` do not end it.
 */
export type FiatPayoutState =
  | 'awaiting_funds'
  | 'in_review'
  | 'funds_received'
  | 'payment_submitted'
  | 'payment_processed'
  | 'undeliverable'
  | 'returned'
  | 'missing_return_policy'
  | 'refunded'
  | 'canceled'
  | 'error';

export interface FiatPayout {
  readonly id: string;
  readonly state: FiatPayoutState;
  /** The hash of the deposit; undefined until the provider finds it. */
  readonly depositHash?: string | undefined;
  /** The amount that was paid to the bank, after all fees, in units of the currency. Undefined until then. */
  readonly paidAmount?: string | undefined;
  readonly refund?: { readonly caip2: string; readonly transactionHash: string } | undefined;
  readonly reason?: string | undefined;
}

/** An object that has changed, so that the server should poll it. */
export interface FiatHint {
  readonly kind: 'customer' | 'virtual_account' | 'payout';
  readonly id: string;
}

/** A received notification of the provider. */
export interface FiatNotification {
  /** The headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
  readonly nowMs: number;
}

/**
 * One environment of a provider that verifies customers and moves money between banks and chains. When the provider
 * cannot be reached, methods reject with an error that `isUnavailable` recognizes. All methods that change something
 * are idempotent by `reference`, `key` or id.
 */
export interface FiatProvider {
  /** The networks on which it moves real assets. Assets on other networks would be lost. */
  readonly networks: 'test' | 'main' | 'all';

  /** Opens a customer, or finds the customer with this reference. */
  openCustomer(order: CustomerOrder): Promise<CustomerSnapshot | FiatRefusal>;
  /** Returns the page where the customer reads and accepts the terms. Undefined for an unknown customer. */
  termsLink(customerId: string, redirectUri?: string): Promise<string | undefined>;
  /** Returns the page where the customer is verified. Undefined for an unknown customer. */
  verificationLink(
    customerId: string,
    options: { redirectUri?: string | undefined; endorsements?: readonly string[] | undefined },
  ): Promise<string | undefined>;
  /** Opens or updates a customer with submitted data. */
  submit(submission: Submission): Promise<CustomerSnapshot | FiatRefusal>;
  /** Returns undefined for an unknown customer. */
  customer(customerId: string): Promise<CustomerSnapshot | undefined>;

  registerBankAccount(order: BankAccountOrder): Promise<RegisteredBankAccount | FiatRefusal>;
  /** Removes a bank account. Does nothing if it was removed before. */
  removeBankAccount(customerId: string, bankAccountId: string): Promise<void>;

  openVirtualAccount(order: VirtualAccountOrder): Promise<VirtualAccount | FiatRefusal>;
  /** Returns undefined for an unknown account. */
  virtualAccount(customerId: string, virtualAccountId: string): Promise<VirtualAccount | undefined>;
  /** Closes an account, so that later deposits are refunded. Does nothing if it was closed before. */
  closeVirtualAccount(customerId: string, virtualAccountId: string): Promise<void>;
  /**
   * Returns a page of the deposit history of all accounts: the reports after the cursor, or the first page if the
   * cursor is undefined.
   */
  depositsAfter(cursor: string | undefined): Promise<FiatDepositPage>;

  openPayout(order: PayoutOrder): Promise<OpenedPayout | FiatRefusal>;
  /** Cancels a payout that waits for its deposit. A later deposit is refunded. Does nothing if the payout has ended. */
  cancelPayout(payoutId: string): Promise<void>;
  /** Returns undefined for an unknown payout. */
  payout(payoutId: string): Promise<FiatPayout | undefined>;

  /**
   * Returns the objects that a notification is about; undefined unless the provider signed it recently. Everything else
   * in the notification is ignored.
   */
  readHint(notification: FiatNotification): readonly FiatHint[] | undefined;
}

/** The providers to which this server is connected. */
export interface FiatProviders {
  /** Returns undefined when this environment of the provider is not configured. */
  find(provider: string, environment: FiatEnvironment): FiatProvider | undefined;
}
