/** Where the shop finds its wallet service, and the wallet that it pays from. */
export interface ShopSettings {
  readonly baseUrl: string;
  readonly appId: string;
  readonly appSecret: string;
  readonly walletId: string;
  /** Default: that of the platform. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface Refund {
  readonly orderId: string;
  readonly address: string;
  /** In USDC: `12.50`. */
  readonly amount: string;
}

const MAX_TRIES = 3;

/** The payment was refused; another try would be refused as well. */
export class RefundRefusedError extends Error {
  constructor(orderId: string, reason: string) {
    super(`the refund of ${orderId} was refused: ${reason}`);
    this.name = 'RefundRefusedError';
  }
}

/**
 * Pays a refund in USDC on Base, and returns the id of the transfer.
 *
 * The order is the idempotency key, so a request whose response was lost can be sent again: it pays once.
 */
export async function payOut(settings: ShopSettings, refund: Refund): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send(settings, refund);
    } catch (error) {
      if (error instanceof RefundRefusedError || tries === MAX_TRIES) throw error;
    }
  }
}

async function send(settings: ShopSettings, { orderId, address, amount }: Refund): Promise<string> {
  const { baseUrl, appId, appSecret, walletId, fetch = globalThis.fetch } = settings;
  const response = await fetch(`${baseUrl}/v1/wallets/${walletId}/transfer`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${appId}:${appSecret}`)}`,
      'content-type': 'application/json',
      'service-app-id': appId,
      'service-idempotency-key': `refund-${orderId}`,
    },
    body: JSON.stringify({
      source: { asset: 'usdc', chain: 'base', amount },
      destination: { address },
    }),
  });
  const body = (await response.json()) as { readonly id: string; readonly error?: string };
  if (response.status >= 500) throw new Error(`the wallet service answered ${response.status}`);
  if (!response.ok) throw new RefundRefusedError(orderId, String(body.error));
  return body.id;
}
