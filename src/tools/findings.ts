/** The result of one check of this machine. */
export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'warning' | 'fault';
  readonly text: string;
  /** What to do about it. Omitted if the check passed. */
  readonly advice?: string;
}

export function ok(name: string, text: string): Finding {
  return { name, state: 'ok', text };
}

export function warning(name: string, text: string, advice: string): Finding {
  return { name, state: 'warning', text, advice };
}

export function fault(name: string, text: string, advice: string): Finding {
  return { name, state: 'fault', text, advice };
}
