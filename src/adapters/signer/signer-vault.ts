import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { KeyVault } from '../../ports/key-vault.ts';
import type { Log } from '../../ports/log.ts';
import { operationNames, vaultCalling } from './operations.ts';
import { connectTo, type Hello, type SignerConnection } from './signer-connection.ts';
import { SignerUnavailableError } from './signer-errors.ts';

/** A way to a signer, which may be started for it. */
export interface SignerLink {
  /** Rejects with the reason, for example when the signer refuses its settings. */
  readonly stream: Promise<Duplex>;
  /** Ends a signer that was started; resolves when it has ended. */
  end(): Promise<void>;
}

/** The vault of a signer in another process. */
export interface SignerVault {
  readonly vault: KeyVault;
  /** Rejects with the reason while the signer cannot be used. */
  check(): Promise<void>;
  /** Ends the connection, and the signer if it was started for it. */
  close(): Promise<void>;
}

/** CHOICE: a signer that dies once is back at once; one that keeps dying is started every five seconds. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
/** A signer that has lived that long is not one that keeps dying. */
const LONG_LIFE_MS = 30_000;

interface SignerVaultOptions {
  readonly log: Log;
  /** The contracts that the server builds calls of. */
  readonly contracts?: readonly string[];
}

/**
 * Opens the link to a signer, and again whenever it breaks. While it is broken, calls are rejected at once with an error
 * that `isUnavailable` recognizes.
 *
 * @throws when the first link cannot be opened.
 */
export async function openSignerVault(
  open: () => SignerLink,
  { log, contracts = [] }: SignerVaultOptions,
): Promise<SignerVault> {
  let link = open();
  let connection: SignerConnection | undefined;
  let isClosed = false;
  const stopping = new AbortController();
  connection = await connect(link);
  const { hello } = connection;
  warnOfOthers(hello);

  /** The signer refuses calls of other contracts as it refuses forged ones. */
  function warnOfOthers({ contracts: known = contracts }: Hello): void {
    const missing = contracts.filter((each) => !known.includes(each));
    if (missing.length === 0) return;
    log.warn({ missing }, 'the signer lacks contracts of this server: owned wallets cannot use them');
  }

  function isSame({ currentMasterKeyId, masterKeyIds }: Hello): boolean {
    const ids = JSON.stringify([...hello.masterKeyIds].sort());
    return (
      currentMasterKeyId === hello.currentMasterKeyId && JSON.stringify([...masterKeyIds].sort()) === ids
    );
  }

  async function reopen(): Promise<SignerConnection | undefined> {
    link = open();
    const next = await connect(link).catch(() => undefined);
    if (next === undefined || isSame(next.hello)) return next;
    // Under other keys, secrets would be sealed that no start has checked. Restart the servers to change keys.
    log.error({}, 'the signer was restarted with other master keys; it is not used');
    next.close();
    await link.end();
    return undefined;
  }

  async function keepOpen(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!isClosed) {
      const openedMs = performance.now();
      await connection?.ended;
      connection = undefined;
      await link.end();
      if (isClosed) return;
      if (performance.now() - openedMs > LONG_LIFE_MS) pauseMs = FIRST_PAUSE_MS;
      log.warn({ restart_in_ms: pauseMs }, 'the signer has ended');
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs);
      if (isClosed) return;
      connection = await reopen();
      if (isClosed) connection?.close();
      if (connection === undefined) continue;
      log.info({}, 'the signer is back');
      warnOfOthers(connection.hello);
    }
  }
  const keeping = keepOpen();

  const call = async (name: (typeof operationNames)[number], parts: readonly Uint8Array[], json: unknown) => {
    if (connection === undefined) throw new SignerUnavailableError('the signer is being restarted');
    return connection.call(numberOf.get(name)!, parts, json);
  };

  return {
    vault: {
      currentMasterKeyId: hello.currentMasterKeyId,
      loginApps: hello.loginApps ?? [],
      contracts: hello.contracts,
      ...vaultCalling(call),
    },
    async check() {
      if (connection === undefined) throw new SignerUnavailableError('the signer is being restarted');
    },
    async close() {
      isClosed = true;
      stopping.abort();
      connection?.close();
      await keeping;
      await link.end();
    },
  };
}

const numberOf = new Map(operationNames.map((name, number) => [name, number]));

async function connect({ stream, end }: SignerLink): Promise<SignerConnection> {
  try {
    return await connectTo(await stream);
  } catch (error) {
    await end();
    throw error;
  }
}
