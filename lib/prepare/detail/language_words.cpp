#include "prepare/detail/language_words.hpp"

#include <algorithm>

namespace tern::prepare::detail {

const std::vector<Language>& languages() {
  static const std::vector<Language> all = {
      {"English", "svop",
       "the baker|my sister|our neighbour|a young doctor|the teacher|their uncle|an old sailor|the "
       "child|her friend|nobody",
       "buys|has found|wants|is looking for|sells|brings|has lost|needs",
       "the red book|some bread|a new lamp|two chairs|an apple|the letter|this map|a cup of "
       "tea|the "
       "keys|that picture",
       "at the market|in the kitchen|before noon|near the station|for the first time|without a "
       "word|after work|on the hill"},
      {"German", "svop",
       "der Bäcker|meine Schwester|unser Nachbar|eine junge Ärztin|die Lehrerin|ihr Onkel|ein "
       "alter "
       "Seemann|das Kind|ihre Freundin|niemand",
       "kauft|sucht|findet|verkauft|bringt|verliert|möchte|braucht",
       "das rote Buch|etwas Brot|eine neue Lampe|zwei Stühle|einen Apfel|den Brief|diese "
       "Karte|eine "
       "Tasse Tee|die Schlüssel|jenes Bild",
       "auf dem Markt|in der Küche|vor dem Mittag|neben dem Bahnhof|zum ersten Mal|ohne ein "
       "Wort|nach der Arbeit|auf dem Hügel"},
      {"Dutch", "svop",
       "de bakker|mijn zus|onze buurman|een jonge dokter|de leraar|hun oom|een oude zeeman|het "
       "kind|haar vriendin|niemand",
       "koopt|zoekt|vindt|verkoopt|brengt|verliest|wil|heeft nodig",
       "het rode boek|wat brood|een nieuwe lamp|twee stoelen|een appel|de brief|deze kaart|een "
       "kopje "
       "thee|de sleutels|dat schilderij",
       "op de markt|in de keuken|voor de middag|bij het station|voor het eerst|zonder een woord|na "
       "het werk|op de heuvel"},
      {"Swedish", "svop",
       "bagaren|min syster|vår granne|en ung läkare|läraren|deras farbror|en gammal "
       "sjöman|barnet|hennes vän|ingen",
       "köper|söker|hittar|säljer|hämtar|förlorar|vill ha|behöver",
       "den röda boken|lite bröd|en ny lampa|två stolar|ett äpple|brevet|den här kartan|en kopp "
       "te|nycklarna|den där tavlan",
       "på torget|i köket|före middagen|nära stationen|för första gången|utan ett ord|efter "
       "jobbet|på kullen"},
      {"French", "svop",
       "le boulanger|ma soeur|notre voisin|un jeune médecin|la maîtresse|leur oncle|un vieux "
       "marin|l'enfant|son amie|personne ici ne",
       "achète|cherche|trouve|vend|apporte|perd|voudrait|demande",
       "le livre rouge|du pain|une lampe neuve|deux chaises|une pomme|la lettre|cette carte|une "
       "tasse de thé|les clés|ce tableau",
       "au marché|dans la cuisine|avant midi|près de la gare|pour la première fois|sans un "
       "mot|après "
       "le travail|sur la colline"},
      {"Spanish", "svop",
       "el panadero|mi hermana|nuestro vecino|una joven doctora|la maestra|su tío|un viejo "
       "marinero|el niño|su amiga|nadie",
       "compra|busca|encuentra|vende|trae|pierde|quiere|necesita",
       "el libro rojo|un poco de pan|una lámpara nueva|dos sillas|una manzana|la carta|este "
       "mapa|una "
       "taza de té|las llaves|aquel cuadro",
       "en el mercado|en la cocina|antes del mediodía|cerca de la estación|por primera vez|sin "
       "decir "
       "palabra|después del trabajo|en la colina"},
      {"Italian", "svop",
       "il fornaio|mia sorella|il nostro vicino|una giovane dottoressa|la maestra|loro zio|un "
       "vecchio marinaio|il bambino|la sua amica|nessuno",
       "compra|cerca|trova|vende|porta|perde|vorrebbe|chiede",
       "il libro rosso|del pane|una lampada nuova|due sedie|una mela|la lettera|questa mappa|una "
       "tazza di tè|le chiavi|quel quadro",
       "al mercato|in cucina|prima di mezzogiorno|vicino alla stazione|per la prima volta|senza "
       "una "
       "parola|dopo il lavoro|sulla collina"},
      {"Finnish", "svop",
       "leipuri|sisareni|naapurimme|nuori lääkäri|opettaja|heidän setänsä|vanha "
       "merimies|lapsi|hänen "
       "ystävänsä|kukaan ei enää",
       "ostaa|etsii|löytää|myy|tuo|kadottaa|haluaa|tarvitsee",
       "punaisen kirjan|vähän leipää|uuden lampun|kaksi tuolia|omenan|kirjeen|tämän kartan|kupin "
       "teetä|avaimet|tuon taulun",
       "torilla|keittiössä|ennen puoltapäivää|aseman lähellä|ensimmäistä kertaa|sanomatta "
       "sanaakaan|töiden jälkeen|kukkulalla"},
      {"Turkish", "spov",
       "fırıncı|kız kardeşim|komşumuz|genç bir doktor|öğretmen|onların amcası|yaşlı bir "
       "denizci|çocuk|arkadaşı|bugün kimse",
       "alıyor|arıyor|buluyor|satıyor|getiriyor|kaybediyor|istiyor|bekliyor",
       "kırmızı kitabı|biraz ekmek|yeni bir lamba|iki sandalye|bir elma|mektubu|bu haritayı|bir "
       "bardak çay|anahtarları|şu resmi",
       "pazarda|mutfakta|öğleden önce|istasyonun yanında|ilk kez|tek söz etmeden|işten "
       "sonra|tepenin üstünde"},
      {"Russian", "svop",
       "пекарь|моя сестра|наш сосед|молодой врач|учительница|их дядя|старый моряк|ребёнок|её "
       "подруга|кто-то",
       "покупает|ищет|находит|продаёт|приносит|теряет|хочет|просит",
       "красную книгу|немного хлеба|новую лампу|два стула|яблоко|письмо|эту карту|чашку "
       "чая|ключи|ту картину",
       "на рынке|на кухне|до полудня|возле вокзала|в первый раз|без единого слова|после работы|на "
       "холме"},
      {"Greek", "svop",
       "ο φούρναρης|η αδελφή μου|ο γείτονάς μας|ένας νέος γιατρός|η δασκάλα|ο θείος τους|ένας "
       "γέρος "
       "ναύτης|το παιδί|η φίλη της|κανείς δεν",
       "αγοράζει|ψάχνει|βρίσκει|πουλάει|φέρνει|χάνει|θέλει|ζητάει",
       "το κόκκινο βιβλίο|λίγο ψωμί|μια καινούρια λάμπα|δύο καρέκλες|ένα μήλο|το γράμμα|αυτόν τον "
       "χάρτη|ένα φλιτζάνι τσάι|τα κλειδιά|εκείνη την εικόνα",
       "στην αγορά|στην κουζίνα|πριν το μεσημέρι|κοντά στον σταθμό|για πρώτη φορά|χωρίς "
       "λέξη|μετά τη δουλειά|στον λόφο"},
      {"Arabic", "vsop", "الخباز|أخي|جارنا|طبيب شاب|المعلم|عمهم|بحار عجوز|الولد|صديقه|رجل ما",
       "يشتري|يبحث عن|يجد|يبيع|يحضر|يفقد|يريد|يطلب",
       "الكتاب الأحمر|بعض الخبز|مصباح جديد|كرسيين|تفاحة|الرسالة|هذه الخريطة|كوب من "
       "الشاي|المفاتيح|تلك الصورة",
       "في السوق|في المطبخ|قبل الظهر|قرب المحطة|لأول مرة|دون كلمة|بعد العمل|على التل"},
      {"Portuguese", "svop",
       "o padeiro|minha irmã|nosso vizinho|uma jovem médica|a professora|o tio deles|um velho "
       "marinheiro|o menino|a amiga dela|ninguém",
       "compra|procura|encontra|vende|traz|perde|quer|pede",
       "o livro vermelho|um pouco de pão|uma lâmpada nova|duas cadeiras|uma maçã|a carta|este "
       "mapa|uma xícara de chá|as chaves|aquele quadro",
       "no mercado|na cozinha|antes do meio-dia|perto da estação|pela primeira vez|sem dizer uma "
       "palavra|depois do trabalho|na colina"},
      {"Danish", "svop",
       "bageren|min søster|vores nabo|en ung læge|læreren|deres onkel|en gammel "
       "sømand|barnet|hendes veninde|ingen",
       "køber|leder efter|finder|sælger|henter|taber|vil have|mangler",
       "den røde bog|lidt brød|en ny lampe|to stole|et æble|brevet|dette kort|en kop "
       "te|nøglerne|det dér billede",
       "på torvet|i køkkenet|før middag|nær stationen|for første gang|uden et ord|efter "
       "arbejdet|på bakken"},
      {"Norwegian", "svop",
       "bakeren|søsteren min|naboen vår|en ung lege|læreren|onkelen deres|en gammel "
       "sjømann|barnet|venninnen hennes|ingen",
       "kjøper|leter etter|finner|selger|kommer med|mister|vil ha|trenger",
       "den røde boka|litt brød|en ny lampe|to stoler|et eple|brevet|dette kartet|en kopp "
       "te|nøklene|det bildet",
       "på torget|på kjøkkenet|før lunsj|nær stasjonen|for første gang|uten et ord|etter jobben|på "
       "åsen"},
      {"Polish", "svop",
       "piekarz|moja siostra|nasz sąsiad|młody lekarz|nauczycielka|ich wujek|stary "
       "marynarz|dziecko|jej przyjaciółka|ktoś",
       "kupuje|znajduje|sprzedaje|przynosi|gubi|bierze|ogląda|wybiera",
       "czerwoną książkę|trochę chleba|nową lampę|dwa krzesła|jabłko|list|tę mapę|filiżankę "
       "herbaty|klucze|tamten obraz",
       "na targu|w kuchni|przed południem|obok dworca|po raz pierwszy|bez słowa|po pracy|na "
       "wzgórzu"},
      {"Czech", "svop",
       "pekař|moje sestra|náš soused|mladý lékař|učitelka|jejich strýc|starý námořník|dítě|její "
       "přítelkyně|někdo",
       "kupuje|hledá|nachází|prodává|přináší|ztrácí|chce|potřebuje",
       "červenou knihu|trochu chleba|novou lampu|dvě židle|jablko|dopis|tuto mapu|šálek "
       "čaje|klíče|tamten obraz",
       "na trhu|v kuchyni|před polednem|u nádraží|poprvé|beze slova|po práci|na kopci"},
      {"Hungarian", "svop",
       "a pék|a nővérem|a szomszédunk|egy fiatal orvos|a tanárnő|a nagybátyjuk|egy öreg "
       "tengerész|a gyerek|a barátnője|valaki",
       "megveszi|keresi|megtalálja|eladja|elhozza|elveszíti|kéri|megnézi",
       "a piros könyvet|azt a kenyeret|az új lámpát|a két széket|az almát|a levelet|ezt a "
       "térképet|a csésze teát|a kulcsokat|azt a képet",
       "a piacon|a konyhában|dél előtt|az állomás mellett|először|szó nélkül|munka után|a dombon"},
      {"Romanian", "svop",
       "brutarul|sora mea|vecinul nostru|o doctoriță tânără|învățătoarea|unchiul lor|un marinar "
       "bătrân|copilul|prietena ei|cineva",
       "cumpără|caută|găsește|vinde|aduce|pierde|vrea|cere",
       "cartea roșie|niște pâine|o lampă nouă|două scaune|un măr|scrisoarea|harta aceasta|o ceașcă "
       "de ceai|cheile|tabloul acela",
       "la piață|în bucătărie|înainte de amiază|lângă gară|pentru prima dată|fără un cuvânt|după "
       "serviciu|pe deal"},
      {"Ukrainian", "svop",
       "пекар|моя сестра|наш сусід|молодий лікар|вчителька|їхній дядько|старий моряк|дитина|її "
       "подруга|хтось",
       "купує|шукає|знаходить|продає|приносить|губить|хоче|просить",
       "червону книгу|трохи хліба|нову лампу|два стільці|яблуко|лист|цю карту|чашку чаю|ключі|ту "
       "картину",
       "на ринку|на кухні|до полудня|біля вокзалу|вперше|без жодного слова|після роботи|на "
       "пагорбі"},
      {"Bulgarian", "svop",
       "пекарят|сестра ми|нашият съсед|млад лекар|учителката|техният чичо|стар "
       "моряк|детето|нейната приятелка|някой",
       "купува|търси|намира|продава|носи|губи|иска|взема",
       "червената книга|малко хляб|нова лампа|два стола|една ябълка|писмото|тази карта|чаша "
       "чай|ключовете|онази картина",
       "на пазара|в кухнята|преди обед|до гарата|за първи път|без нито дума|след работа|на хълма"},
      {"Indonesian", "svop",
       "tukang roti|kakak saya|tetangga kami|seorang dokter muda|guru itu|paman mereka|seorang "
       "pelaut tua|anak itu|temannya|seseorang",
       "membeli|mencari|menemukan|menjual|membawa|kehilangan|menginginkan|membutuhkan",
       "buku merah itu|sedikit roti|lampu baru|dua kursi|sebuah apel|surat itu|peta ini|secangkir "
       "teh|kunci itu|lukisan itu",
       "di pasar|di dapur|sebelum tengah hari|di dekat stasiun|untuk pertama kali|tanpa sepatah "
       "kata|sepulang kerja|di atas bukit"},
      {"Hebrew", "svop",
       "האופה|אחי|השכן שלנו|רופא צעיר|המורה|הדוד שלהם|מלח זקן|הילד|החבר שלה|מישהו",
       "קונה|מחפש|מוצא|מוכר|מביא|מאבד|רוצה|מבקש",
       "את הספר האדום|קצת לחם|מנורה חדשה|שני כיסאות|תפוח|את המכתב|את המפה הזאת|כוס תה|את "
       "המפתחות|את התמונה ההיא",
       "בשוק|במטבח|לפני הצהריים|ליד התחנה|בפעם הראשונה|בלי מילה|אחרי העבודה|על הגבעה"},
      {"Persian", "spov",
       "نانوا|خواهرم|همسایه ما|یک پزشک جوان|معلم|عموی آنها|یک ملوان پیر|کودک|دوست او|کسی",
       "می‌خرد|می‌یابد|می‌فروشد|می‌آورد|می‌خواهد|"
       "می‌بیند|"
       "برمی‌دارد|"
       "گم "
       "می‌کند",
       "کتاب قرمز را|کمی نان|یک چراغ نو|دو صندلی|یک سیب|نامه را|این نقشه را|یک فنجان چای|کلیدها "
       "را|آن تابلو را",
       "در بازار|در آشپزخانه|پیش از ظهر|نزدیک ایستگاه|برای اولین بار|بدون هیچ حرفی|پس از کار|روی "
       "تپه"}};
  return all;
}

std::vector<std::string_view> phrases(std::string_view list) {
  std::vector<std::string_view> all;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('|'), list.size());
    all.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return all;
}

}  // namespace tern::prepare::detail
