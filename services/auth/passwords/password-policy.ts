import { ZxcvbnFactory, type ZxcvbnResult } from '@zxcvbn-ts/core';
import { adjacencyGraphs, dictionary as common } from '@zxcvbn-ts/language-common';
import { dictionary as english, translations } from '@zxcvbn-ts/language-en';

import type { Blocklist } from './blocklist.ts';

/** The user who gets the password. */
interface Person {
  email: string;
  name: string;
}

export type PasswordPolicy = ReturnType<typeof createPasswordPolicy>;

/**
 * Maximum length in code points, which bounds the hashing cost. NIST SP 800-63B-4 §3.1.1.2 and ASVS 5.0 6.2.9 require
 * 64 or more.
 */
const maxLength = 128;
/** Minimum zxcvbn score of 0 to 4: about 10^8 guesses. */
const minScore = 3;
const serviceName = 'content platform';

/**
 * Limits the part of a password that zxcvbn checks, and the number of l33t substitutions. With the library's defaults,
 * 128 digits and symbols block the event loop for seconds. With these limits the slowest password takes about 25 ms for
 * each of two checks, and twice that before the code is optimized. A password that fails by its first 32 characters is
 * refused whatever follows.
 */
const effort = { maxLength: 32, l33tMaxSubstitutions: 3 };

const userWordsReason = 'It contains your name, your email address or the name of this service.';
const listedReason = 'It is on a list of common or leaked passwords.';
const advice = 'Choose three or four unrelated words.';

/** Returns the usual words for the user and the service, whole and in parts: ASVS 5.0 6.1.2, 6.2.11. */
function userWords({ email, name }: Person): string[] {
  const phrases = [serviceName, name, email, ...email.split('@')].map((phrase) => phrase.normalize('NFC'));
  const plain = phrases.map((phrase) => phrase.normalize('NFD').replace(/\p{M}/gu, ''));
  const words = [...phrases, ...plain].flatMap((phrase) => {
    const parts = phrase.split(/[^\p{L}\p{N}]+/u);
    return [phrase, ...parts, ...['', ' ', '-', '_', '.'].map((separator) => parts.join(separator))];
  });
  return [...new Set(words)].filter((word) => word.length > 2);
}

/**
 * Removes separators between words, and replaces fullwidth letters by their normal form. zxcvbn counts each separator
 * as a word and rates any three words as strong. Returns an empty string if the symbols are more than separators.
 */
function withoutSeparators(password: string): string {
  const together = password.normalize('NFKC').replace(/[^\p{L}\p{M}\p{N}]+/gu, '');
  return [...together].length * 4 >= [...password].length * 3 ? together : '';
}

function reasonOf({ sequence, feedback: { warning, suggestions } }: ZxcvbnResult): string {
  const words = sequence.some((match) => match['dictionaryName'] === 'userInputs');
  return words ? userWordsReason : (warning ?? suggestions.at(-1)!);
}

/**
 * Accepts passwords of at least `minLength` code points that are not easily guessed (ASVS 5.0 6.2.4, 6.2.11). There are
 * no rules on character types (NIST SP 800-63B-4 §3.1.1.2 and ASVS 5.0 6.2.1, 6.2.5). The policy checks the stored
 * form, NFC. It also refuses the passwords in `blocklist` (6.2.12).
 */
export function createPasswordPolicy(minLength: number, blocklist?: Blocklist) {
  const zxcvbn = new ZxcvbnFactory({
    dictionary: { ...common, ...english },
    graphs: adjacencyGraphs,
    translations,
    ...effort,
  });

  return {
    /**
     * Returns a sentence that begins with a verb (`Must have …`) and gives advice, as §3.1.1.2 requires. Returns
     * undefined if the password is acceptable.
     */
    findProblem(password: string, person: Person): string | undefined {
      const normal = password.normalize('NFC');
      const length = [...normal].length;
      if (length < minLength || length > maxLength)
        return `Must have ${minLength} to ${maxLength} characters; this has ${length}.`;
      if (blocklist?.includes(normal)) return `Is too easy to guess. ${listedReason} ${advice}`;
      const own = userWords(person);
      const forms = [withoutSeparators(normal), normal].filter(Boolean);
      const weak = forms.map((form) => zxcvbn.check(form, own)).find(({ score }) => score < minScore);
      return weak && `Is too easy to guess. ${reasonOf(weak)} ${advice}`;
    },
  };
}
