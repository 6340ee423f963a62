/** Keeps the keys of custodial wallets, each under the id that the wallet has here. */
export interface Custodian {
  /**
   * Opens a wallet for one of its customers; the same wallet id opens the same wallet. Undefined when it has no such
   * customer.
   */
  openWallet(order: {
    readonly walletId: string;
    readonly userId: string;
    /** The chain's name. */
    readonly chain: string;
  }): Promise<{ readonly address: string } | undefined>;
}

/** Every custodian that this server works with. */
export interface Custodians {
  /** Undefined where no custodian of this name is configured. */
  find(provider: string): Custodian | undefined;
}
