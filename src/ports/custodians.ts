/** Holds the keys of custodial wallets, identified by our wallet ids. */
export interface Custodian {
  /**
   * Opens a wallet for one of the custodian's customers. Idempotent by wallet id. Undefined when the custodian has no
   * such customer.
   */
  openWallet(order: {
    readonly walletId: string;
    readonly userId: string;
    /** The chain's name. */
    readonly chain: string;
  }): Promise<{ readonly address: string } | undefined>;
}

/** The custodians that this server is connected to. */
export interface Custodians {
  /** Undefined when no custodian with this name is configured. */
  find(provider: string): Custodian | undefined;
}
