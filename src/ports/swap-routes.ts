/** A swap of two assets of one chain. Addresses in the notation of the chain. */
export interface SwapOrder {
  readonly caip2: string;
  /** Spends the input. */
  readonly sender: string;
  /** Receives the output. */
  readonly recipient: string;
  /** Contract; null is the native asset. */
  readonly tokenIn: string | null;
  readonly tokenOut: string | null;
  /** In base units of the input or output, depending on `amountType`. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  readonly slippageBps: number;
}

/** How to swap at the current state of the chain. */
export interface SwapRoute {
  /** What the sender calls, in order, once the spender may take the input. */
  readonly calls: readonly { readonly to: string; readonly value: bigint; readonly data: Uint8Array }[];
  /** The contract that takes the input by an allowance; null when the calls carry it. */
  readonly spender: string | null;
  /** The expected input, and the most that the calls spend. */
  readonly rawInput: bigint;
  readonly rawInputMax: bigint;
  /** The expected output, and the least that the calls deliver; with less they revert. */
  readonly rawOutput: bigint;
  readonly rawOutputMin: bigint;
  /** The gas that the calls use, approximately. */
  readonly gasUnits: bigint;
  readonly expiresAtSeconds: number;
  /** Where the input that was spent, and the output, show among the movements of the transactions. */
  readonly spent: MovementPattern;
  readonly received: MovementPattern;
}

/** Selects movements of one token by sender or recipient. */
export interface MovementPattern {
  readonly token: string;
  readonly from?: string;
  readonly to?: string;
}

/** Why there is no route. */
export interface SwapRefusal {
  readonly fault: 'pair' | 'amount';
  readonly message: string;
}

/** Finds routes between assets of one chain. Methods reject when the chain cannot be reached. */
export interface SwapRoutes {
  /** Whether swaps on this chain are routed at all. */
  supports(caip2: string): boolean;
  /** Reserves nothing; each call reads the current state. */
  route(order: SwapOrder): Promise<SwapRoute | SwapRefusal>;
}
