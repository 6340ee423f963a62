/** One attempt to deliver an event. */
export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as JSON, sent unchanged. */
  readonly bodyText: string;
  /** The event to deliver. */
  readonly event: { readonly type: string; readonly appId: string };
  /** How long to wait for the response. */
  readonly timeoutMs: number;
}

/** The outcome of an attempt to deliver an event. */
export interface WebhookOutcome {
  /** The HTTP status, including redirects. Undefined without a response. */
  readonly status: number | undefined;
  /** Set when there is no response. */
  readonly failure: 'timeout' | 'connection_failed' | 'address_not_allowed' | undefined;
  readonly durationMs: number;
}

/** Sends events to the endpoints of customers. */
export interface WebhookSender {
  /**
   * Returns the system time for webhook timestamps, in Unix ms. Receivers compare timestamps with their own clock, so
   * a frozen or moved sandbox clock does not apply.
   */
  systemNow(): number;
  /**
   * Returns the reason why `url` is not accepted as an endpoint, as text for the caller. Undefined when it is
   * accepted. It checks only the URL; `send` checks the resolved address of each connection.
   */
  urlFault(url: string): string | undefined;
  /** Sends one POST without following redirects. Never rejects. */
  send(request: WebhookRequest): Promise<WebhookOutcome>;
  /** Closes the open connections. */
  close(): Promise<void>;
}
