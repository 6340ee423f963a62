import type { ConditionSource } from '../condition-source.ts';
import { TEXT_SEARCH } from '../operators.ts';
import { absent, present, unreadable } from '../values.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** A message to be signed: its UTF-8 text and its length in bytes. */
export const message: ConditionSource = {
  methods: ['personal_sign', 'signMessage', 'signRawMessageBytes'],
  resolve({ field }) {
    switch (field) {
      case 'content':
        return {
          kind: 'text',
          operators: TEXT_SEARCH,
          read: ({ undecodable, messageBytes }) => {
            if (undecodable !== undefined) return unreadable(undecodable);
            if (messageBytes === undefined) return absent('not a message');
            const text = decodeText(messageBytes);
            return text === undefined ? unreadable('the message is not UTF-8 text') : present(text);
          },
        };
      case 'byte_length':
        return {
          kind: 'number',
          operators: ['eq', 'gt', 'gte', 'lt', 'lte'],
          read: ({ undecodable, messageBytes }) => {
            if (undecodable !== undefined) return unreadable(undecodable);
            return messageBytes === undefined
              ? absent('not a message')
              : present(String(messageBytes.length));
          },
        };
      default:
        return undefined;
    }
  },
};
