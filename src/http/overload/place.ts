import type { HttpExchange } from '../http-exchange.ts';
import type { Admission, AdmittedWork } from './admission.ts';

/** The place of a request among those in a unit of work. */
export interface Place {
  /** Waits for the place. @throws as `Admission.begin`. */
  take(): Promise<void> | void;
  leave(): void;
  /**
   * Asks the vault among the requests that sign. Others leave their place meanwhile: a vault that hangs must not keep
   * requests that need no key.
   */
  whileAsking<T>(ask: () => Promise<T>): Promise<T>;
}

export function placeOf(
  exchange: HttpExchange,
  admission: Pick<Admission, 'begin' | 'beginSigning'> | undefined,
): Place {
  let held: (() => void) | undefined;
  let isOfSigning = false;

  function hold(work: AdmittedWork): void {
    ({ leave: held, isSigning: isOfSigning } = work);
  }
  function take(): Promise<void> | void {
    if (admission === undefined) return undefined;
    const begun = admission.begin(exchange);
    return begun instanceof Promise ? begun.then(hold) : hold(begun);
  }
  function leave(): void {
    held?.();
    held = undefined;
  }

  return {
    take,
    leave,
    async whileAsking(ask) {
      const hadPlace = held !== undefined;
      if (admission === undefined || (hadPlace && isOfSigning)) return ask();
      leave();
      const signing = await admission.beginSigning(exchange);
      let answer: Awaited<ReturnType<typeof ask>>;
      try {
        answer = await ask();
      } finally {
        signing.leave();
      }
      if (hadPlace) await take();
      return answer;
    },
  };
}
