import { X509Certificate } from 'node:crypto';
import type { ServeConfig } from '../config/config.ts';
import type { Log } from '../ports/runtime.ts';

type Certificate = NonNullable<ServeConfig['tls']>;

/** CHOICE: the interval at which the files of the certificate are read again, for a renewal without a signal. */
const EVERY_MS = 60_000;

interface CertificateFiles {
  /** The certificate in use. */
  readonly current: Certificate;
  /** Reads the files. Throws when they cannot be used, for example while only one of them has been replaced. */
  readonly read: () => Certificate | undefined;
  /** Uses a certificate for new connections. */
  readonly use: (certificate: Certificate) => void;
  readonly log: Log;
}

/**
 * Watches the files of the certificate. When a new certificate is unusable, the error is logged and the server keeps
 * the current one.
 */
export function followCertificate({ current, read, use, log }: CertificateFiles) {
  let used = current;
  let reported: string | undefined;
  const check = (): boolean => {
    try {
      const found = read();
      if (found === undefined || (found.cert === used.cert && found.key === used.key)) return false;
      use(found);
      used = found;
      reported = undefined;
      log.info(
        { expires: new X509Certificate(found.cert).validToDate.toISOString() },
        'the certificate was replaced',
      );
      return true;
    } catch (err) {
      const { message } = err as Error;
      if (message !== reported)
        log.error({ err }, 'the new certificate cannot be used; keeping the current one');
      reported = message;
      return false;
    }
  };
  const timer = setInterval(check, EVERY_MS).unref();
  return {
    /** Reads the files immediately. */
    reload(): void {
      reported = undefined;
      if (!check() && reported === undefined) log.info({}, 'the certificate has not changed');
    },
    close: () => clearInterval(timer),
  };
}
