/** One attempt to deliver an event. */
export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, sent as it is. */
  readonly bodyText: string;
  /** How long the endpoint has to answer. */
  readonly timeoutMs: number;
}

/** What came of an attempt. */
export interface WebhookOutcome {
  /** The HTTP status, a redirection's too; undefined when none came in time. */
  readonly status: number | undefined;
  /** Why no status came. */
  readonly failure: 'timeout' | 'connection_failed' | 'address_not_allowed' | undefined;
  readonly durationMs: number;
}

/** Carries events to the endpoints of customers. */
export interface WebhookSender {
  /**
   * The time that receivers compare with their own when they verify an event, Unix ms: the machine's, even where the
   * server's clock is moved or stands still.
   */
  realNow(): number;
  /**
   * Why nothing may ever be sent to `url`, in words for the caller; undefined when it may be tried. Only the text is
   * judged: what the host resolves to is judged at each connection.
   */
  objectionTo(url: string): string | undefined;
  /** One POST, no redirection followed. Never rejects. */
  send(request: WebhookRequest): Promise<WebhookOutcome>;
  /** Ends the connections that were kept. */
  close(): Promise<void>;
}
