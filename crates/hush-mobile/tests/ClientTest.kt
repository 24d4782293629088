// Tests the Kotlin client against a real server: ClientTestKt PROGRAM.
import hushdb.Client
import hushdb.Event
import hushdb.HushException
import hushdb.Key
import hushdb.KeyColumn
import hushdb.Observer
import hushdb.Options
import hushdb.Rows
import java.net.InetAddress
import java.net.ServerSocket
import java.time.Duration
import java.util.Collections
import kotlin.system.exitProcess
import kotlin.test.assertContains
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull

private const val NOBODY = "nobody@example.org"

private fun person(index: Int) = Key.Text("user$index@example.org")

private fun List<ByteArray?>.texts() = map { it?.decodeToString() }

/** An observer that keeps the events that it receives. */
private class Notes : Observer {
    val events: MutableList<Event> = Collections.synchronizedList(mutableListOf())

    override fun report(event: Event) {
        events.add(event)
    }

    inline fun <reified T : Event> count() = events.count { it is T }
}

private class Tests(private val scratch: Scratch) {
    private val people =
        scratch.build("people", listOf("email,name") + (0..499).map { "user$it@example.org,Name $it" }, "--key", "email", "--protocol", "colpack")
    private val rows = scratch.build("rows", listOf("name") + (0..99).map { "Row $it" }, "--value", "name", "--protocol", "frodo")
    private val networks =
        scratch.build("networks", listOf("net,who", "10.0.0.0/8,a", "10.1.0.0/16,b"), "--range", "net", "--sorted", "ip")
    private val wide = scratch.build("wide", listOf("id,rank,note") + (0..99).map { "k$it,$it,n$it" }, "--key", "id", "--protocol", "simple")
    private val keyed = scratch.build("keyed", listOf("id,note") + (0..99).map { "k$it,n$it" }, "--key", "id", "--protocol", "exppack-s")
    private val numbers = scratch.build("numbers", listOf(-7, 8).map { """{"id": $it, "v": "of $it"}""" }, "--key", "id")
    private val two = scratch.build("two", listOf(-7, 8).map { """{"name": "a", "id": $it, "v": "of $it"}""" }, "--key", "name", "--key", "id")
    private val server = scratch.serve(listOf(people, rows, wide, networks, keyed, numbers, two))
    private val url = server.url

    fun aKeyIsFoundAndAnotherIsNot() = runBlocking {
        Client.connect(url).use { client ->
            assertEquals(setOf("people", "rows", "wide", "networks", "keyed", "numbers", "two"), client.tables().map { it.name }.toSet())
            assertEquals(500UL, client.tables().single { it.name == "people" }.records)
            val table = client.table("people")
            assertEquals("people", table.name())
            assertEquals("Name 7", table.get(person(7))?.decodeToString())
            assertEquals("Name 8", table.get(Key.Bytes("user8@example.org".encodeToByteArray()))?.decodeToString())
            assertNull(table.get(Key.Text(NOBODY)))
            val found = table.getMany(listOf(person(1), Key.Text(NOBODY), person(1)))
            assertEquals(listOf("Name 1", null, "Name 1"), found.texts())
            assertEquals(listOf(), table.getMany(listOf()))
            val facts = table.facts()
            assertEquals(Triple("colpack", 500UL, true), Triple(facts.protocol, facts.records, facts.byKey))
            assertTrue(facts.securityBits >= 128.0 && facts.fields == null)
            val stats = table.stats()
            assertEquals(listOf(6UL, 6UL), listOf(stats.queries, stats.answers))
            assertTrue(stats.bytesUp >= stats.queryBytes * 6UL && stats.queryBytes > 0UL && stats.seconds.encrypt > 0.0)
        }
    }

    fun queriesArePrepared() = runBlocking {
        val client = Client.connect(url)
        val rows = client.table("rows")
        assertEquals(2U, rows.prepare(2U))
        assertEquals("Row 7", rows.get(Key.Number(7))?.decodeToString())
        assertEquals(1UL, rows.stats().prepared)
        assertFailsWith<HushException.OptionException> { client.table("people").prepare(1U) }
    }

    fun whoCanWaitMayBlock() {
        val table = Client.connectBlocking(url).tableBlocking("people")
        assertEquals("Name 9", table.getBlocking(person(9))?.decodeToString())
        assertEquals(listOf(null, "Name 2"), table.getManyBlocking(listOf(Key.Text(NOBODY), person(2))).texts())
        assertFailsWith<HushException.NoSuchTable> { Client.connectBlocking(url).tableBlocking("nothing") }
    }

    fun recordsHavePositions() = runBlocking {
        val table = Client.connect(url).table("rows")
        assertEquals(listOf("Row 3", "Row 99"), table.getMany(listOf(Key.Index(3UL), Key.Index(99UL))).texts())
        assertContains(assertFailsWith<HushException.OptionException> { table.get(Key.Index(100UL)) }.message!!, "99")
        assertFailsWith<HushException.OptionException> { table.get(Key.Text("a key")) }
        assertEquals("Row 0", table.get(Key.Index(0UL))?.decodeToString(), "it goes on after an error")
    }

    fun keysHaveTheColumnsOfTheTable() = runBlocking {
        val client = Client.connect(url)
        val numbers = client.table("numbers")
        val found = numbers.getMany(listOf(Key.Number(-7), Key.Index(8UL), Key.Text("8"), Key.Columns(listOf(KeyColumn.Number(9)))))
        assertEquals(listOf("of -7", "of 8", "of 8", null), found.texts())
        val two = client.table("two")
        val columns = { id: KeyColumn -> Key.Columns(listOf(KeyColumn.Text("a"), id)) }
        val both = two.getMany(listOf(columns(KeyColumn.Number(-7)), columns(KeyColumn.Bytes("8".encodeToByteArray())), columns(KeyColumn.Number(7))))
        assertEquals(listOf("of -7", "of 8", null), both.texts())
        for ((wrong, says) in listOf(
            Key.Text("a") to "1 column was given, and the table's key is name (string), id (int64)",
            Key.Columns(listOf(KeyColumn.Number(1), KeyColumn.Number(2))) to "column name is of type string",
            columns(KeyColumn.Text("b")) to "column id is of type int64",
        )) {
            assertContains(assertFailsWith<HushException.OptionException>(says) { two.get(wrong) }.message!!, says)
        }
        assertFailsWith<HushException.OptionException> { client.table("rows").get(Key.Number(-1)) }
        Unit
    }

    fun rowsOfASortedTableAreFound() = runBlocking {
        val table = Client.connect(url).table("networks")
        assertEquals(listOf("{\"net\":\"10.1.0.0/16\",\"who\":\"b\"}", null), table.getMany(
            listOf(Key.Rows(Rows.IN_RANGE, "10.1.2.3"), Key.Rows(Rows.IN_RANGE, "11.0.0.0"))).texts())
        assertEquals("a", table.get(Key.Text("10.2.0.0"))?.decodeToString())
        assertFailsWith<HushException.OptionException> { table.get(Key.Rows(Rows.PREFIX, "10.")) }
        Unit
    }

    fun valuesOfSeveralColumnsAreJson() = runBlocking {
        val table = Client.connect(url).table("wide")
        assertEquals(listOf("rank", "note"), table.facts().fields)
        assertContains(table.get(Key.Text("k9"))!!.decodeToString(), "\"note\":\"n9\"")
    }

    fun manyCanBeAwaitedAtOnce() = runBlocking {
        val table = Client.connect(url).table("people")
        val found = (0..9).map { async { table.get(person(it)) } }.awaitAll()
        assertEquals((0..9).map { "Name $it" }, found.texts())
    }

    /** A server that accepts a connection and never answers blocks no other call, and the waiting call can be cancelled. */
    fun aCallCanBeLeft() = runBlocking {
        ServerSocket(0, 8, InetAddress.getLoopbackAddress()).use { silent ->
            val url = "http://127.0.0.1:${silent.localPort}"
            val began = System.nanoTime()
            val waiting = async { withTimeoutOrNull(300) { Client.connect(url, Options(timeout = Duration.ofSeconds(20))) } }
            assertEquals("Name 1", Client.connect(server.url).table("people").get(person(1))?.decodeToString())
            assertNull(waiting.await())
            assertTrue(System.nanoTime() - began < Duration.ofSeconds(10).toNanos())
            assertFailsWith<HushException.TimedOut> { Client.connect(url, Options(timeout = Duration.ofMillis(200))) }
        }
    }

    fun errorsHaveKinds() = runBlocking {
        val client = Client.connect(url)
        assertContains(assertFailsWith<HushException.ConnectionFailed> { Client.connect("http://127.0.0.1:1") }.message!!, "is the server running")
        assertContains(assertFailsWith<HushException.OptionException> { Client.connect("not a url") }.message!!, "give one such as")
        for ((wrong, says) in listOf(
            Options(token = "two words") to "it has a space", Options(clientCert = "x") to "clientKey", Options(caCert = "x") to "no certificate in PEM",
            Options(timeout = Duration.ZERO) to "above 0", Options(epoch = "12") to "64 hex digits", Options(trust = "12") to "64 hex digits",
        )) {
            val connect = suspend { Client.connect(if (says == "no certificate in PEM") "https://localhost:1" else url, wrong) }
            assertContains(assertFailsWith<HushException.OptionException>(says) { connect() }.message!!, says)
        }
        assertContains(assertFailsWith<HushException.NoSuchTable> { client.table("nothing") }.message!!, "it has")
        val several = assertFailsWith<HushException.NoSuchTable> { client.table() }
        assertEquals("choose_table", several.code())
        assertTrue(several.message.startsWith("the server has several tables, choose one with the option table: "), several.message)
        assertFailsWith<HushException.Untrusted> { Client.connect(url, Options(epoch = "00".repeat(32))).table("people") }
        val cache = Options(cache = "/proc/nowhere")
        assertContains(assertFailsWith<HushException.Other> { Client.connect(url, cache).table("wide") }.message!!, "as the option cache")
        val gone = scratch.serve(listOf(people))
        val table = Client.connect(gone.url).table()
        gone.close()
        assertFailsWith<HushException.ConnectionFailed> { table.get(person(1)) }
        Unit
    }

    fun aServerAsksForATokenOfItsOwn() = runBlocking {
        val tokens = "${scratch.dir}/tokens.json"
        val token = scratch.hushdb("token", "create", "--tokens", tokens, "--name", "kotlin").split(" ", "\n").first { it.startsWith("hush_") }
        scratch.serve(listOf(people), "--tokens", tokens).use { server ->
            val table = Client.connect(server.url, Options(token = token)).table()
            assertEquals("Name 5", table.get(person(5))?.decodeToString())
            for (wrong in listOf(null, "hush_no")) {
                val refused = assertFailsWith<HushException.NotAllowed> { Client.connect(server.url, Options(token = wrong)) }
                assertContains(refused.message!!, "the option token")
            }
        }
    }

    fun anObserverIsTold() = runBlocking {
        val cache = Options(cache = "${scratch.dir}/kept")
        val (first, second) = Notes() to Notes()
        for (notes in listOf(first, second)) {
            val client = Client.connect(url, cache, notes)
            assertContentEquals("n3".encodeToByteArray(), client.table("keyed").get(Key.Text("k3")))
            assertContains(client.table("wide").get(Key.Text("k3"))!!.decodeToString(), "n3")
        }
        assertEquals(listOf(1, 1, 1), listOf(first.count<Event.HintStart>(), first.count<Event.HintEnd>(), first.count<Event.KeysUpload>()))
        val start = first.events.filterIsInstance<Event.HintStart>().single()
        assertEquals(start.bytes, first.events.filterIsInstance<Event.HintProgress>().last().present)
        assertEquals(listOf(), second.events, "hint and keys were kept")
    }

    fun anObserverThatFailsFailsNobody() = runBlocking {
        val failing = object : Observer {
            override fun report(event: Event) = throw IllegalStateException("for a test")
        }
        val table = Client.connect(url, observer = failing).table("wide")
        assertContains(table.get(Key.Text("k4"))!!.decodeToString(), "n4")
    }

    fun secretsAreNotPrinted() {
        val options = Options(token = "hush_secret", clientKey = "secret")
        assertEquals(listOf("Options(..)", "Key(..)", "Key(..)"), listOf(options, person(1), Key.Index(4711UL)).map { it.toString() })
    }

    fun close() = server.close()

    val all = listOf(
        ::aKeyIsFoundAndAnotherIsNot, ::queriesArePrepared, ::whoCanWaitMayBlock, ::recordsHavePositions, ::keysHaveTheColumnsOfTheTable,
        ::valuesOfSeveralColumnsAreJson, ::manyCanBeAwaitedAtOnce, ::aCallCanBeLeft, ::errorsHaveKinds,
        ::aServerAsksForATokenOfItsOwn, ::anObserverIsTold, ::anObserverThatFailsFailsNobody, ::secretsAreNotPrinted,
    )
}

fun main(arguments: Array<String>) {
    var failed = 0
    val passed = Scratch(arguments.single()).use { scratch ->
        val tests = Tests(scratch)
        try {
            tests.all.count { test ->
                val outcome = runCatching { test() }
                outcome.onFailure {
                    failed += 1
                    System.err.println("FAILED ${test.name}")
                    it.printStackTrace()
                }
                outcome.isSuccess
            }
        } finally {
            tests.close()
        }
    }
    println("kotlin: $passed passed, $failed failed")
    exitProcess(if (failed == 0) 0 else 1)
}
